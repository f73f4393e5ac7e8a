"""`bootstrap`, `login` and `logout`: the first administrator, and sessions of people.

Passwords and codes are asked for at a terminal, or come from the environment (`BETTER_COMPUTE_PASSWORD`,
`BETTER_COMPUTE_MFA_CODE`); they are never flags, which other users of the machine could read.
"""

import asyncio
import getpass
import os
import sys
from pathlib import Path
from typing import Any, Final

from cyclopts import App as CommandTree

from better_compute.app import BetterCompute
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import parse_input
from better_compute.cli.caller import tenant_id_of
from better_compute.cli.output import Output
from better_compute.cli.problems import EXIT_OK
from better_compute.cli.profiles import choose_profile, forget_session, save_session
from better_compute.client.client import Client
from better_compute.identity.embedded.exports.provisioning import Administrator, AdministratorCreate, bootstrap, recover
from better_compute.processes.config import find_config
from better_compute.processes.database import deployment_secret, settings_here
from better_compute.processes.local import open_app

PASSWORD: Final = "BETTER_COMPUTE_PASSWORD"  # noqa: S105  # the name of a variable
CODE: Final = "BETTER_COMPUTE_MFA_CODE"


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(make_administrator, name="bootstrap")
    tree.command(login)
    tree.command(logout)
    status: int | None = tree(arguments)
    return status or 0


def make_administrator(*, email: str, name: str, recover: bool = False, config: str | None = None) -> int:
    """Make the root administrator of a new deployment, once.

    Parameters
    ----------
    email
        What the administrator signs in with.
    name
        What others read.
    recover
        Let an administrator in again who lost password or authenticator.
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    fields = {"email": email, "name": name, "password": _asked(PASSWORD, "Password of at least 12 characters: ")}
    wanted = parse_input(AdministratorCreate, fields)
    made = asyncio.run(_make(find_config(config), wanted, again=recover))
    output = Output(as_json=False)
    output.text(f"{made.email} ({made.identity_id}) administers the tenant {made.tenant_id}.")
    output.text(f"Type this secret into an authenticator; it is not shown again: {made.totp_secret}")
    output.text(f"The same as a link: {made.totp_uri}")
    output.text(f"Then: better-compute login --tenant {made.tenant_id} --email {made.email}")
    return EXIT_OK


async def _make(described: BetterCompute, wanted: AdministratorCreate, *, again: bool) -> Administrator:
    secret = deployment_secret(settings_here())
    async with open_app(described) as app:
        make = recover if again else bootstrap
        return await make(app.deployment.database, wanted, secret=secret, root_tenant_id=described.root_tenant_id)


def login(*, tenant: str, email: str, url: str | None = None) -> int:
    """Sign in with password and second factor; the session is kept for later commands.

    Parameters
    ----------
    tenant
        The tenant, by id or slug.
    email
        The address you sign in with.
    url
        The platform's URL; default BETTER_COMPUTE_URL.
    """
    target = _target(url)
    return asyncio.run(_login(target, tenant, email))


async def _login(url: str, tenant: str, email: str) -> int:
    password = _asked(PASSWORD, "Password: ")
    async with Client(url, None) as client:
        fields: dict[str, Any] = {"tenantId": await tenant_id_of(client, tenant), "email": email, "password": password}
        try:
            session = await client.call("auth.signIn", fields, surface="iam")
        except ComputeError as error:
            if not error.details.get("mfaRequired"):
                raise
            fields["mfaCode"] = _asked(CODE, "Code of your authenticator: ")
            session = await client.call("auth.signIn", fields, surface="iam")
    file = save_session(os.environ, url=url, token=session["token"], home=Path.home())
    factor = "with" if session["mfa"] else "without"
    Output(as_json=False).text(f"Signed in as {session['identityId']}, {factor} second factor; kept in {file}.")
    return EXIT_OK


def logout(*, url: str | None = None) -> int:
    """End the saved session.

    Parameters
    ----------
    url
        The platform's URL; default BETTER_COMPUTE_URL.
    """
    return asyncio.run(_logout(_target(url)))


async def _logout(url: str) -> int:
    token = forget_session(os.environ, url=url, home=Path.home())
    if token is None:
        raise ComputeError(ErrorCode.UNAUTHENTICATED, f"There is no saved session for {url}.")
    async with Client(url, token) as client:
        await client.call("auth.signOut", {}, surface="iam")
    Output(as_json=False).text("Signed out.")
    return EXIT_OK


def _target(url: str | None) -> str:
    target = choose_profile(os.environ, url=url, home=Path.home()).url
    if target is None:
        raise ComputeError(ErrorCode.INVALID_INPUT, "Say where to sign in: --url, or BETTER_COMPUTE_URL.", path="url")
    return target


def _asked(variable: str, prompt: str) -> str:
    given = os.environ.get(variable)
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise ComputeError(ErrorCode.INVALID_INPUT, f"There is no terminal to ask at; set {variable}.", path=variable)
    return getpass.getpass(prompt)
