"""Secrets through the envelope: kept, changed, named, deleted, and never shown."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from better_compute.base.canonical import fingerprint
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel.module import Module
from better_compute.modules.secrets.exports import missing_secrets, resolve, spellings
from better_compute.modules.secrets.module import secrets
from better_compute.modules.secrets.schema import SecretCreate
from better_compute.modules.secrets.store import KEPT_VERSIONS
from better_compute.testing.harness import Harness, harness, refused

VALUE = "the value of a secret"

ENVIRONMENT = {"BETTER_COMPUTE_SECRET_ENV_PREFIX": "COMPUTE_", "COMPUTE_TOKEN": "from the environment"}

SEALED = Query(
    name="tests.secrets.sealed",
    sql="select sealed from secret_versions where tenant_id = %(tenant_id)s order by version",
    row=str,
)
FINGERPRINT = Query(
    name="tests.secrets.fingerprint", sql="select fingerprint from idempotency where tenant_id = %(tenant_id)s", row=str
)
EVENTS = Query(
    name="tests.secrets.events",
    sql="select type || ' ' || subject from events where tenant_id = %(tenant_id)s order by id",
    row=str,
)

USED: set[str] = set()
"""Ids of the secrets that the module below holds on to."""


async def used_here(_tx: Tx, secret_id: str) -> str | None:
    return "1 provider account" if secret_id in USED else None


USER = Module(name="users", package=secrets().package.parent / "nowhere", uses={"secret": used_here})


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    USED.clear()
    async with harness(secrets(environment=ENVIRONMENT), USER) as opened:
        yield opened


async def value_of(h: Harness, reference: str, *, tenant_id: str = "acme") -> str:
    return (await resolve(h.app.deployment, reference, tenant_id=tenant_id)).reveal()


async def create(h: Harness, name: str = "one", *, as_: str = "acme", value: str = VALUE, **more: str) -> str:
    made = await h.call("secrets.create", as_=as_, tenant_id=as_, name=name, value=value, **more)
    ident: str = made.id
    return ident


async def test_a_secret_is_answered_without_its_value_and_resolves_to_it(h: Harness) -> None:
    made = await h.call("secrets.create", as_="acme", tenant_id="acme", name="one", value=VALUE)
    assert (made.name, made.version, made.versions) == ("one", 1, None)
    assert VALUE not in repr(made)
    assert await value_of(h, "secret://one") == VALUE
    assert await value_of(h, f"secret://acme/{made.id}") == VALUE
    [sealed] = [await h.database.statement(SEALED, tenant_id="acme")]
    assert sealed is not None
    assert VALUE not in sealed


async def test_a_new_value_counts_from_the_next_use_on_and_the_old_one_is_kept(h: Harness) -> None:
    ident = await create(h)
    updated = await h.call("secrets.update", as_="acme", tenant_id="acme", secret_id="one", value="another")
    assert (updated.id, updated.version) == (ident, 2)
    assert await value_of(h, "secret://one") == "another"
    found = await h.call("secrets.get", as_="acme", tenant_id="acme", secret_id=ident)
    assert [(one.version, one.created_by) for one in found.versions] == [(2, "svc_acme"), (1, "svc_acme")]
    async with h.database.transaction() as tx:
        assert await tx.many(EVENTS, tenant_id="acme") == [
            f"secret.created secret/{ident}",
            f"secret.updated secret/{ident}",
        ]


async def test_the_newest_values_are_kept_and_the_oldest_forgotten(h: Harness) -> None:
    await create(h)
    for number in range(KEPT_VERSIONS + 2):
        await h.call("secrets.update", as_="acme", tenant_id="acme", secret_id="one", value=f"value {number}")
    found = await h.call("secrets.get", as_="acme", tenant_id="acme", secret_id="one")
    assert len(found.versions) == KEPT_VERSIONS
    assert found.versions[0].version == found.version == KEPT_VERSIONS + 3


async def test_updates_at_once_are_versions_one_after_the_other(h: Harness) -> None:
    await create(h)
    changed = await asyncio.gather(
        *(
            h.call("secrets.update", as_="acme", tenant_id="acme", secret_id="one", value=f"value {number}")
            for number in range(6)
        )
    )
    assert sorted(one.version for one in changed) == [2, 3, 4, 5, 6, 7]
    last = max(range(6), key=lambda number: changed[number].version)
    assert await value_of(h, "secret://one") == f"value {last}"


async def test_a_name_is_taken_once_per_tenant(h: Harness) -> None:
    await create(h)
    with refused(ErrorCode.CONFLICT):
        await create(h, value="another")
    await create(h, as_="globex", value="of globex")
    assert await value_of(h, "secret://one") == VALUE
    assert await value_of(h, "secret://one", tenant_id="globex") == "of globex"


async def test_a_name_that_looks_like_an_id_is_refused(h: Harness) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="name"):
        await create(h, "sec_01k0000000000000000000000z")


@pytest.mark.parametrize("value", ["", "a\x00b", "a" * 65_537])
async def test_a_value_that_cannot_be_is_refused_without_being_repeated(h: Harness, value: str) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="value") as caught:
        await create(h, value=value)
    assert not value or value not in f"{caught[0]} {caught[0].details}"


async def test_the_same_key_makes_the_same_secret_and_another_value_is_seen(h: Harness) -> None:
    ident = await create(h, idempotency_key="k")
    assert await create(h, idempotency_key="k") == ident
    with refused(ErrorCode.CONFLICT):
        await create(h, value="another", idempotency_key="k")


async def test_what_is_kept_of_a_keyed_call_cannot_be_guessed_fast(h: Harness) -> None:
    """A plain hash of the input would let whoever reads the database try passwords by the million."""
    await create(h, value="password1", idempotency_key="k")
    guess = {"tenantId": "acme", "name": "one", "value": "password1"}
    assert await h.database.statement(FINGERPRINT, tenant_id="acme") != fingerprint(guess)
    given = SecretCreate(tenant_id="acme", name="one", value="password1", idempotency_key="k")
    kept = given.model_dump(mode="json", by_alias=True, exclude={"idempotency_key"})
    assert await h.database.statement(FINGERPRINT, tenant_id="acme") == fingerprint(kept)
    assert {**kept, "value": "password1"} == guess


async def test_secrets_are_listed_by_name_page_by_page_and_only_what_may_be_read(h: Harness) -> None:
    idents = {name: await create(h, name) for name in ("c", "a", "b")}
    first = await h.call("secrets.list", as_="acme", tenant_id="acme", limit=2)
    rest = await h.call("secrets.list", as_="acme", tenant_id="acme", limit=2, cursor=first.next_cursor)
    assert [one.name for one in (*first.items, *rest.items)] == ["a", "b", "c"]
    h.iam.add("reader", tenant_id="acme", actions=[f"compute:secrets:read compute-secret/{idents['b']}"])
    seen = await h.call("secrets.list", as_="reader", tenant_id="acme")
    assert [one.name for one in seen.items] == ["b"]


async def test_a_deleted_secret_is_gone_with_its_values_and_its_name_is_free(h: Harness) -> None:
    ident = await create(h, idempotency_key="k")
    gone = await h.call("secrets.delete", as_="acme", tenant_id="acme", secret_id="one")
    assert (gone.secret_id, gone.name) == (ident, "one")
    assert await h.database.statement(SEALED, tenant_id="acme") is None
    for reference in ("secret://one", f"secret://acme/{ident}"):
        with refused(ErrorCode.NOT_FOUND):
            await value_of(h, reference)
    with refused(ErrorCode.NOT_FOUND):
        await h.call("secrets.get", as_="acme", tenant_id="acme", secret_id=ident)
    with refused(ErrorCode.CONFLICT):
        await create(h, idempotency_key="k")
    assert await create(h, value="another") != ident


async def test_a_secret_in_use_stays(h: Harness) -> None:
    ident = await create(h)
    USED.add(ident)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await h.call("secrets.delete", as_="acme", tenant_id="acme", secret_id="one")
    assert "1 provider account" in caught[0].message
    assert await value_of(h, "secret://one") == VALUE


async def test_a_secret_of_another_tenant_answers_like_one_that_never_was(h: Harness) -> None:
    ident = await create(h, as_="globex")
    never = ident[:-4] + "0000"
    for reference in (f"secret://globex/{ident}", f"secret://globex/{never}"):
        with refused(ErrorCode.NOT_FOUND) as at_use:
            await value_of(h, reference)
        with refused(ErrorCode.NOT_FOUND) as when_named:
            await h.call("secrets.check", as_="acme", tenant_id="acme", reference=reference)
        message = f"There is no secret {reference!r} in this tenant's view."
        assert at_use[0].message == when_named[0].message == message
    for method in ("secrets.get", "secrets.delete"):
        with refused(ErrorCode.NOT_FOUND):
            await h.call(method, as_="acme", tenant_id="acme", secret_id=ident)


async def test_the_root_tenant_does_not_get_at_a_tenants_secret_either(h: Harness) -> None:
    ident = await create(h)
    with refused(ErrorCode.NOT_FOUND):
        await value_of(h, f"secret://acme/{ident}", tenant_id="root")


async def test_managing_secrets_does_not_mean_using_them(h: Harness) -> None:
    ident = await create(h)
    h.iam.add("manager", tenant_id="acme", actions=["compute:secrets:manage", "compute:secrets:read"])
    h.iam.add("user", tenant_id="acme", actions=[f"compute:secrets:use compute-secret/{ident}"])
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("secrets.check", as_="manager", tenant_id="acme", reference="secret://one")
    usable = await h.call("secrets.check", as_="user", tenant_id="acme", reference="secret://one")
    assert (usable.reference, usable.secret_id) == ("secret://one", ident)
    for method in ("secrets.get", "secrets.delete"):
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call(method, as_="user", tenant_id="acme", secret_id=ident)


async def test_the_environment_is_open_to_the_root_tenant_under_the_prefix(h: Harness) -> None:
    usable = await h.call("secrets.check", tenant_id="root", reference="env://COMPUTE_TOKEN")
    assert usable.secret_id is None
    assert await value_of(h, "env://COMPUTE_TOKEN", tenant_id="root") == "from the environment"
    with refused(ErrorCode.NOT_FOUND):
        await value_of(h, "env://COMPUTE_MISSING", tenant_id="root")
    for tenant_id, reference in (("acme", "env://COMPUTE_TOKEN"), ("root", "env://BETTER_COMPUTE_SECRET")):
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call("secrets.check", as_=tenant_id, tenant_id=tenant_id, reference=reference)
        with refused(ErrorCode.ACCESS_DENIED):
            await value_of(h, reference, tenant_id=tenant_id)


async def test_an_administrator_who_acts_in_a_tenant_gets_no_further_than_it(h: Harness) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("secrets.check", as_="admin", tenant_id="acme", reference="env://COMPUTE_TOKEN")


async def test_a_text_that_is_no_reference_is_refused_without_being_repeated(h: Harness) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="reference") as caught:
        await h.call("secrets.check", as_="acme", tenant_id="acme", reference="hunter2-the-value")
    assert "hunter2" not in f"{caught[0]} {caught[0].details}"
    with pytest.raises(ComputeError) as at_use:
        await value_of(h, "hunter2-the-value")
    assert "hunter2" not in f"{at_use.value} {at_use.value.details}"


async def test_every_spelling_of_a_secret_is_known_and_what_is_missing_is_told(h: Harness) -> None:
    ident = await create(h)
    async with h.database.transaction(read_only=True) as tx:
        known = await spellings(tx, tenant_id="acme", secret_id=ident)
        assert known == ["secret://one", f"secret://acme/{ident}"]
        assert await spellings(tx, tenant_id="globex", secret_id=ident) == []
        assert await missing_secrets(tx, [*known, "secret://two"], tenant_id="acme") == ["secret://two"]
        assert await missing_secrets(tx, known, tenant_id="globex") == sorted(known)
