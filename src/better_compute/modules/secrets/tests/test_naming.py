"""A module whose objects name secrets: decided when they are made, held until they are, asked before a deletion."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.base.models import VIEW, TenantInput
from better_compute.base.secrets import SecretReference
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.module import Module
from better_compute.kernel.targets import in_tenant
from better_compute.modules.secrets.exports import naming_secrets, spellings
from better_compute.modules.secrets.module import secrets
from better_compute.testing.harness import Harness, harness, refused

ADD = Query(
    name="tests.naming.add",
    sql="insert into accounts (tenant_id, token) values (%(tenant_id)s, %(token)s)",
    row=type(None),
)
COUNT = Query(
    name="tests.naming.count",
    sql="select count(*) from accounts where tenant_id = %(tenant_id)s and token = any(%(tokens)s)",
    row=int,
)
TENANT_OF = Query(
    name="tests.naming.tenant_of",
    sql="select tenant_id from secrets where id = %(id)s",
    row=str,
    crosses_tenants="a test looks up an owner",
)


class AccountCreate(TenantInput):
    config: dict[str, SecretReference]


@dataclass(frozen=True, slots=True)
class Account:
    __pydantic_config__ = VIEW

    tenant_id: str


def references(given: AccountCreate) -> Mapping[str, str]:
    return {f"config.{name}": text for name, text in given.config.items()}


ENTERED, GO_ON = asyncio.Event(), asyncio.Event()


@method(
    "accounts.create",
    action="compute:accounts:manage",
    target=in_tenant(),
    further=naming_secrets(references),
    transaction="write",
)
async def create_account(call: Call, input: AccountCreate) -> Account:
    """Makes an account."""
    for token in input.config.values():
        await call.tx.run(ADD, tenant_id=call.tenant_id, token=token)
    if "slow" in input.config:
        ENTERED.set()
        await GO_ON.wait()
    return Account(tenant_id=call.tenant_id)


async def in_use(tx: Tx, secret_id: str) -> str | None:
    tenant_id = await tx.one(TENANT_OF, id=secret_id)
    tokens = await spellings(tx, tenant_id=tenant_id, secret_id=secret_id)
    count = await tx.one(COUNT, tenant_id=tenant_id, tokens=tokens)
    return f"{count} accounts" if count else None


@pytest.fixture
async def h(tmp_path: Path) -> AsyncIterator[Harness]:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_accounts.sql").write_text(
        "create table accounts (tenant_id text not null, token text not null);"
    )
    accounts = Module(name="accounts", package=tmp_path, methods=(create_account,), uses={"secret": in_use})
    ENTERED.clear()
    GO_ON.clear()
    async with harness(secrets(environment={"BETTER_COMPUTE_SECRET_ENV_PREFIX": "COMPUTE_"}), accounts) as opened:
        yield opened


async def secret(h: Harness, name: str, *, as_: str = "acme") -> str:
    ident: str = (await h.call("secrets.create", as_=as_, tenant_id=as_, name=name, value="a value")).id
    return ident


async def account(h: Harness, *, as_: str = "acme", tenant_id: str = "acme", **config: str) -> None:
    await h.call("accounts.create", as_=as_, tenant_id=tenant_id, config=config)


async def test_each_secret_is_decided_once_for_the_caller(h: Harness) -> None:
    one, two = await secret(h, "one"), await secret(h, "two")
    h.iam.asked.clear()
    await account(h, a="secret://one", b="secret://two", c=f"secret://acme/{one}")
    asked = [(check.action, check.resource.name) for _, check in h.iam.asked]
    assert asked == [
        ("compute:accounts:manage", "compute-tenant/acme"),
        ("compute:secrets:use", f"compute-secret/{one}"),
        ("compute:secrets:use", f"compute-secret/{two}"),
    ]


async def test_who_may_not_use_a_secret_makes_nothing_that_names_it(h: Harness) -> None:
    one = await secret(h, "one")
    h.iam.denials["svc_acme"] = [f"compute:secrets:use compute-secret/{one}"]
    with refused(ErrorCode.ACCESS_DENIED) as caught:
        await account(h, token="secret://one")
    assert caught[0].details == {"action": "compute:secrets:use", "resource": f"compute-secret/{one}"}


async def test_a_secret_that_is_missing_or_anothers_is_named_by_its_path(h: Harness) -> None:
    theirs = await secret(h, "theirs", as_="globex")
    for token in ("secret://theirs", "secret://missing", f"secret://globex/{theirs}", f"secret://acme/{theirs}"):
        with refused(ErrorCode.NOT_FOUND, path="config.token") as caught:
            await account(h, token=token)
        assert caught[0].message == f"There is no secret {token!r} in this tenant's view."


async def test_the_environment_is_decided_on_the_root_tenant_and_closed_to_others(h: Harness) -> None:
    h.iam.asked.clear()
    await account(h, as_="root", tenant_id="root", token="env://COMPUTE_TOKEN")
    assert ("compute:secrets:use", "compute-tenant/root") in {
        (check.action, check.resource.name) for _, check in h.iam.asked
    }
    with refused(ErrorCode.ACCESS_DENIED, path="config.token"):
        await account(h, token="env://COMPUTE_TOKEN")
    with refused(ErrorCode.ACCESS_DENIED, path="config.token"):
        await account(h, as_="root", tenant_id="root", token="env://PATH")


async def test_a_named_secret_is_not_deleted(h: Harness) -> None:
    one = await secret(h, "one")
    await account(h, token=f"secret://acme/{one}")
    with refused(ErrorCode.INVALID_STATE):
        await h.call("secrets.delete", as_="acme", tenant_id="acme", secret_id="one")


async def test_a_deletion_waits_for_whoever_is_about_to_name_the_secret(h: Harness) -> None:
    await secret(h, "one")
    naming = asyncio.create_task(account(h, slow="secret://one"))
    await ENTERED.wait()
    deleting = asyncio.create_task(h.call("secrets.delete", as_="acme", tenant_id="acme", secret_id="one"))
    done, _ = await asyncio.wait({deleting}, timeout=0.3)
    assert not done
    GO_ON.set()
    await naming
    with refused(ErrorCode.INVALID_STATE):
        await deleting
