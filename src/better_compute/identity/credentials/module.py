"""The manifest of service accounts and API keys."""

from pathlib import Path

from better_compute.identity.credentials.methods import (
    create_credential,
    create_service_account,
    get_service_account,
    list_credentials,
    list_service_accounts,
    revoke_credential,
    rotate_credential,
    set_service_account_status,
    update_credential,
)
from better_compute.kernel.module import Module

MODULE = Module(
    name="credentials",
    package=Path(__file__).parent,
    requires=("iam", "people", "roles"),
    methods=(
        create_service_account,
        get_service_account,
        list_service_accounts,
        set_service_account_status,
        create_credential,
        list_credentials,
        update_credential,
        rotate_credential,
        revoke_credential,
    ),
)
