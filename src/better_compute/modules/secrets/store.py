"""Statements on secrets.

Sealed values are read when a reference is resolved, and by the kernel when it seals them anew. Whoever names a
secret holds its row of the projection (`for share`, by the envelope); whoever deletes one takes that row first and asks
afterwards who uses it, so that a secret and its first user come one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.kernel.resealing import SealedColumn
from better_compute.modules.secrets.rules import PURPOSE
from better_compute.modules.secrets.schema import SecretVersion

KEPT_VERSIONS: Final = 100
"""How many values of a secret are kept: enough to see who changed it when, and an end to what hourly changes add."""


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret as it is stored, without its values."""

    id: str
    tenant_id: str
    name: str
    version: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class CurrentValue:
    """The newest value of a secret, sealed."""

    id: str
    name: str
    version: int
    sealed: str


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """What a secret may be named by."""

    id: str
    name: str


_COLUMNS: Final = """s.id, s.tenant_id, s.name, s.version,
  (extract(epoch from s.created_at) * 1000)::bigint as created_at,
  (extract(epoch from s.updated_at) * 1000)::bigint as updated_at"""

_INSERT: Final = Query(
    name="secrets.insert",
    sql=f"""insert into secrets as s (id, tenant_id, name, owner_id)
            values (%(id)s, %(tenant_id)s, %(name)s, %(owner_id)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=SecretRow,
    refuses={
        "secrets_tenant_name": Refusal(
            ErrorCode.CONFLICT,
            "There is a secret {name} in this tenant already; give it a new value with secrets.update.",
        )
    },
)

_INSERT_VERSION: Final = Query(
    name="secrets.insert_version",
    sql="""insert into secret_versions (secret_id, version, tenant_id, sealed, created_by)
           values (%(secret_id)s, %(version)s, %(tenant_id)s, %(sealed)s, %(created_by)s)""",
    row=NoneType,
)

FIND_ID: Final = Query(
    name="secrets.find_id",
    sql="select s.id from secrets s where s.tenant_id = %(tenant_id)s and s.name = %(name)s",
    row=str,
)

_FIND: Final = Query(
    name="secrets.find",
    sql=f"select {_COLUMNS} from secrets s where s.tenant_id = %(tenant_id)s and s.id = %(id)s",  # noqa: S608  # constants only
    row=SecretRow,
)

_NEXT_VERSION: Final = Query(
    name="secrets.next_version",
    sql=f"""update secrets s set version = s.version + 1, updated_at = now()
            where s.tenant_id = %(tenant_id)s and s.id = %(id)s
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=SecretRow,
)

_FORGET_VERSIONS: Final = Query(
    name="secrets.forget_versions",
    sql="""delete from secret_versions
           where tenant_id = %(tenant_id)s and secret_id = %(secret_id)s and version <= %(version)s""",
    row=NoneType,
)

_LOCK_VIEW: Final = Query(
    name="secrets.lock_view",
    sql="""select v.id from projection v
           where v.tenant_id = %(tenant_id)s and v.type = 'compute-secret' and v.id = %(id)s for update""",
    row=str,
)

_DELETE: Final = Query(
    name="secrets.delete",
    sql="delete from secrets s where s.tenant_id = %(tenant_id)s and s.id = %(id)s returning s.name",
    row=str,
)

_LIST: Final = Query(
    name="secrets.list",
    sql=f"""select {_COLUMNS} from secrets s
            join projection v on v.tenant_id = %(tenant_id)s and v.type = 'compute-secret' and v.id = s.id
            where s.tenant_id = %(tenant_id)s and (%(after)s::text is null or s.name > %(after)s::text)
            order by s.name limit %(limit)s""",  # noqa: S608  # constants only
    row=SecretRow,
)

_LIST_VERSIONS: Final = Query(
    name="secrets.list_versions",
    sql="""select v.version, (extract(epoch from v.created_at) * 1000)::bigint as created_at, v.created_by
           from secret_versions v where v.tenant_id = %(tenant_id)s and v.secret_id = %(secret_id)s
           order by v.version desc""",
    row=SecretVersion,
)

_LIST_KNOWN: Final = Query(
    name="secrets.list_known",
    sql="""select s.id, s.name from secrets s
           where s.tenant_id = %(tenant_id)s and (s.id = any(%(ids)s) or s.name = any(%(names)s))""",
    row=KnownSecret,
)

_LIST_CURRENT: Final = Query(
    name="secrets.list_current",
    sql="""select s.id, s.name, s.version, v.sealed from secrets s
           join secret_versions v on v.tenant_id = s.tenant_id and v.secret_id = s.id and v.version = s.version
           where s.tenant_id = %(tenant_id)s and (s.id = any(%(ids)s) or s.name = any(%(names)s))""",
    row=CurrentValue,
)

SEALED: Final = SealedColumn(table="secret_versions", column="sealed", key=("secret_id", "version"), purpose=PURPOSE)
"""The values of secrets."""


async def insert_secret(tx: Tx, *, secret_id: str, tenant_id: str, name: str, owner_id: str) -> SecretRow:
    """A new secret that has no value yet; CONFLICT when the tenant has one of that name."""
    return await tx.one(_INSERT, id=secret_id, tenant_id=tenant_id, name=name, owner_id=owner_id)


async def insert_version(tx: Tx, secret: SecretRow, *, sealed: str, created_by: str) -> None:
    """The value of the secret's present version; values beyond those kept are forgotten."""
    ident = {"tenant_id": secret.tenant_id, "secret_id": secret.id}
    await tx.run(_INSERT_VERSION, **ident, version=secret.version, sealed=sealed, created_by=created_by)
    await tx.run(_FORGET_VERSIONS, **ident, version=secret.version - KEPT_VERSIONS)


async def find_secret(tx: Tx, *, tenant_id: str, secret_id: str) -> SecretRow | None:
    """A tenant's secret by id."""
    return await tx.maybe(_FIND, tenant_id=tenant_id, id=secret_id)


async def next_version(tx: Tx, *, tenant_id: str, secret_id: str) -> SecretRow | None:
    """The secret with its version counted up, held until the transaction ends; None when there is none."""
    return await tx.maybe(_NEXT_VERSION, tenant_id=tenant_id, id=secret_id)


async def lock_view(tx: Tx, *, tenant_id: str, secret_id: str) -> None:
    """Waits for everybody who is about to name the secret, and keeps others from it until the transaction ends."""
    await tx.maybe(_LOCK_VIEW, tenant_id=tenant_id, id=secret_id)


async def delete_secret(tx: Tx, *, tenant_id: str, secret_id: str) -> str | None:
    """The name of the secret that was deleted with all its values; None when there was none."""
    return await tx.maybe(_DELETE, tenant_id=tenant_id, id=secret_id)


async def list_secrets(tx: Tx, *, tenant_id: str, after: str | None, limit: int) -> list[SecretRow]:
    """A tenant's secrets by name."""
    return await tx.many(_LIST, tenant_id=tenant_id, after=after, limit=limit)


async def list_versions(tx: Tx, *, tenant_id: str, secret_id: str) -> list[SecretVersion]:
    """The values that are kept of a secret, newest first."""
    return await tx.many(_LIST_VERSIONS, tenant_id=tenant_id, secret_id=secret_id)


async def list_known(tx: Tx, *, tenant_id: str, ids: Sequence[str], names: Sequence[str]) -> list[KnownSecret]:
    """Which of these ids and names are secrets of the tenant."""
    return await tx.many(_LIST_KNOWN, tenant_id=tenant_id, ids=list(ids), names=list(names))


async def list_current(tx: Tx, *, tenant_id: str, ids: Sequence[str], names: Sequence[str]) -> list[CurrentValue]:
    """The newest values of these secrets of the tenant, sealed."""
    return await tx.many(_LIST_CURRENT, tenant_id=tenant_id, ids=list(ids), names=list(names))
