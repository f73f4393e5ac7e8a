"""The manifest of `secrets`."""

import os
from collections.abc import Mapping
from pathlib import Path

from better_compute.db.pool import Database
from better_compute.kernel.module import Module
from better_compute.kernel.settings import read_secret_sources
from better_compute.modules.secrets.commands import COMMANDS
from better_compute.modules.secrets.exports import SecretResolver
from better_compute.modules.secrets.methods import (
    SECRET_TYPE,
    check_secret,
    create_secret,
    delete_secret,
    get_secret,
    list_secrets,
    update_secret,
)
from better_compute.modules.secrets.schema import EVENTS
from better_compute.modules.secrets.store import SEALED


def secrets(*, environment: Mapping[str, str] = os.environ) -> Module:
    """Sealed secrets, and references to them; `environment` is what `env://` reads and settings come from."""

    def resolver(_database: Database) -> SecretResolver:
        return SecretResolver(read_secret_sources(environment), environment)

    return Module(
        name="secrets",
        package=Path(__file__).parent,
        methods=(create_secret, get_secret, list_secrets, update_secret, delete_secret, check_secret),
        resource_types=(SECRET_TYPE,),
        events=EVENTS,
        sealed=(SEALED,),
        commands=COMMANDS,
        provides=(resolver,),
    )
