"""The manifest of signing in."""

from pathlib import Path

from better_compute.identity.sessions.commands import COMMANDS
from better_compute.identity.sessions.exports import Passwords
from better_compute.identity.sessions.methods.authenticators import (
    confirm_totp,
    enroll_totp,
    remove_totp,
    set_administrator,
)
from better_compute.identity.sessions.methods.passwords import change_password, set_someones_password
from better_compute.identity.sessions.methods.sign_in import get_caller_identity, sign_in, sign_out
from better_compute.identity.sessions.store import SEEDS
from better_compute.kernel.module import Module

MODULE = Module(
    name="sessions",
    package=Path(__file__).parent,
    requires=("iam", "tenants", "people", "roles"),
    methods=(
        sign_in,
        sign_out,
        get_caller_identity,
        change_password,
        set_someones_password,
        enroll_totp,
        confirm_totp,
        remove_totp,
        set_administrator,
    ),
    sealed=(SEEDS,),
    commands=COMMANDS,
    provides=(lambda _database: Passwords(),),
)
