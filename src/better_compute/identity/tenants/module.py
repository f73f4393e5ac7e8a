"""The manifest of the tenant tree."""

from pathlib import Path

from better_compute.identity.tenants.methods import (
    create_tenant,
    delete_tenant,
    get_tenant,
    list_children,
    list_tenants,
    lookup_tenant,
    rename_tenant,
    set_boundary,
    set_slug,
    set_status,
)
from better_compute.identity.tenants.schema import TENANT_CREATED, TENANT_DELETED, TENANT_UPDATED
from better_compute.kernel.module import Module

MODULE = Module(
    name="tenants",
    package=Path(__file__).parent,
    requires=("iam",),
    methods=(
        create_tenant,
        get_tenant,
        list_children,
        list_tenants,
        lookup_tenant,
        rename_tenant,
        set_slug,
        set_boundary,
        set_status,
        delete_tenant,
    ),
    events=(TENANT_CREATED, TENANT_UPDATED, TENANT_DELETED),
)
