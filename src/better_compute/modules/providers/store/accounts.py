"""Statements on provider accounts.

Whoever makes a pool with an account holds the account's row (`hold_account`), and so does whoever opens a server's
record; whoever deletes an account takes the row first and asks afterwards who uses it.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.base.errors import ErrorCode, not_found
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.modules.providers.schema import ProviderAccount, ProviderAccountCreate, ProviderAccountList


@dataclass(frozen=True, slots=True)
class AccountRow:
    """A provider account as it is stored."""

    id: str
    tenant_id: str
    name: str
    provider: str
    config: dict[str, Any]
    """With references where the provider's fields are secret."""
    version: int
    quiet_seconds: float
    """How long the provider asked not to be called; 0 when it may be."""
    created_at: int
    updated_at: int

    @property
    def view(self) -> ProviderAccount:
        """The account as it is answered."""
        return ProviderAccount(
            id=self.id,
            tenant_id=self.tenant_id,
            name=self.name,
            provider=self.provider,
            config=self.config,
            version=self.version,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class OwnedAccount:
    """An account as a fleet plan sees it."""

    id: str
    name: str
    provider: str
    config: dict[str, Any]
    servers: int
    """Servers ordered through it that are not given up."""


_COLUMNS: Final = """a.id, a.tenant_id, a.name, a.provider, a.config, a.version,
  greatest(0, coalesce(extract(epoch from a.quiet_until - now()), 0))::float8 as quiet_seconds,
  (extract(epoch from a.created_at) * 1000)::bigint as created_at,
  (extract(epoch from a.updated_at) * 1000)::bigint as updated_at"""

_INSERT: Final = Query(
    name="providers.insert_account",
    sql=f"""insert into provider_accounts as a (id, tenant_id, name, provider, config, owner_id)
            values (%(id)s, %(tenant_id)s, %(name)s, %(provider)s, %(config)s, %(owner_id)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=AccountRow,
    refuses={
        "provider_accounts_tenant_name": Refusal(
            ErrorCode.CONFLICT, "There is a provider account {name} in this tenant already; choose another name."
        )
    },
)

_FIND: Final = Query(
    name="providers.find_account",
    sql=f"select {_COLUMNS} from provider_accounts a where a.tenant_id = %(tenant_id)s and a.id = %(id)s",  # noqa: S608  # constants only
    row=AccountRow,
)

FIND_ANY_ACCOUNT: Final = Query(
    name="providers.find_any_account",
    sql=f"select {_COLUMNS} from provider_accounts a where a.id = %(id)s",  # noqa: S608  # constants only
    row=AccountRow,
    crosses_tenants="background steps work for every tenant; a method asks only about what it was decided on",
)

_LOCK: Final = Query(
    name="providers.lock_account",
    sql=f"""select {_COLUMNS} from provider_accounts a
            where a.tenant_id = %(tenant_id)s and a.id = %(id)s for update""",  # noqa: S608  # constants only
    row=AccountRow,
)

_HOLD: Final = Query(
    name="providers.hold_account",
    sql="select a.id from provider_accounts a where a.tenant_id = %(tenant_id)s and a.id = %(id)s for key share",
    row=str,
)

_UPDATE: Final = Query(
    name="providers.update_account",
    sql=f"""update provider_accounts a
            set config = %(config)s, version = a.version + 1, updated_at = now(), quiet_until = null
            where a.tenant_id = %(tenant_id)s and a.id = %(id)s
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=AccountRow,
)

_DELETE: Final = Query(
    name="providers.delete_account",
    sql="delete from provider_accounts where tenant_id = %(tenant_id)s and id = %(id)s",
    row=NoneType,
)

_LIST: Final = Query(
    name="providers.list_accounts",
    sql=f"""select {_COLUMNS} from provider_accounts a
            join projection v on v.tenant_id = %(tenant_id)s and v.type = 'compute-provider-account' and v.id = a.id
            where a.tenant_id = %(tenant_id)s
              and (%(provider)s::text is null or a.provider = %(provider)s::text)
              and (%(after)s::text is null or a.id > %(after)s::text)
            order by a.id limit %(limit)s""",  # noqa: S608  # constants only
    row=AccountRow,
)

_LIST_OWNED: Final = Query(
    name="providers.list_owned_accounts",
    sql="""select a.id, a.name, a.provider, a.config, count(s.holder) as servers
           from provider_accounts a
           left join provider_servers s on s.account_id = a.id and s.released_at is null
           where a.tenant_id = %(tenant_id)s
           group by a.id order by a.name""",
    row=OwnedAccount,
)

_LIST_POOLS: Final = Query(
    name="providers.list_pools",
    sql="""select p.id from pools p
           where p.tenant_id = %(tenant_id)s and p.provider_account_id = %(account_id)s and p.archived_at is null
           order by p.id limit 3""",
    row=str,
)

_COUNT_NAMING: Final = Query(
    name="providers.count_naming",
    sql="""select count(*) from provider_accounts a
           join secrets s on s.tenant_id = a.tenant_id and s.id = %(secret_id)s
           where exists (
             select from jsonb_each_text(a.config) c
             where c.value in ('secret://' || s.name, 'secret://' || s.tenant_id || '/' || s.id))""",
    row=int,
)

_LIST_SECRETS: Final = Query(
    name="providers.list_secrets",
    sql="""select 'secret://' || s.name from secrets s where s.tenant_id = %(tenant_id)s
           union all
           select 'secret://' || s.tenant_id || '/' || s.id from secrets s where s.tenant_id = %(tenant_id)s""",
    row=str,
)

KEEP_QUIET: Final = Query(
    name="providers.keep_quiet",
    sql="""update provider_accounts
           set quiet_until = greatest(quiet_until, now() + make_interval(secs => %(seconds)s::float8))
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=NoneType,
)

DEPLOYMENT: Final = Query(
    name="providers.deployment",
    sql="select deployment from provider_identity",
    row=str,
    crosses_tenants="who the deployment is belongs to no tenant",
)


async def insert_account(tx: Tx, account: ProviderAccountCreate, *, account_id: str, owner_id: str) -> AccountRow:
    """A new account; CONFLICT for a name that the tenant has already."""
    return await tx.one(
        _INSERT,
        id=account_id,
        tenant_id=account.tenant_id,
        name=account.name,
        provider=account.provider,
        config=dict(sorted(account.config.items())),
        owner_id=owner_id,
    )


async def find_account(tx: Tx, *, tenant_id: str, account_id: str) -> AccountRow | None:
    """The tenant's account of that id."""
    return await tx.maybe(_FIND, tenant_id=tenant_id, id=account_id)


async def get_account(tx: Tx, *, tenant_id: str, account_id: str) -> AccountRow:
    """The account; NOT_FOUND when it is not this tenant's."""
    account = await find_account(tx, tenant_id=tenant_id, account_id=account_id)
    return _found(account, account_id)


async def lock_account(tx: Tx, *, tenant_id: str, account_id: str) -> AccountRow:
    """The account, held against every use until the transaction ends; NOT_FOUND when it is not this tenant's."""
    account = await tx.maybe(_LOCK, tenant_id=tenant_id, id=account_id)
    return _found(account, account_id)


async def hold_account(tx: Tx, *, tenant_id: str, account_id: str) -> None:
    """Keeps the account from being deleted until the transaction ends; NOT_FOUND when it is not this tenant's."""
    if await tx.maybe(_HOLD, tenant_id=tenant_id, id=account_id) is None:
        raise not_found("provider account", account_id)


async def update_account(tx: Tx, account: AccountRow, *, config: dict[str, Any]) -> AccountRow:
    """The account with another configuration; the provider may be called at once, for it may be another one's now."""
    return await tx.one(_UPDATE, tenant_id=account.tenant_id, id=account.id, config=config)


async def delete_account(tx: Tx, account: AccountRow) -> None:
    """The account is gone; nothing may refer to it any more."""
    await tx.run(_DELETE, tenant_id=account.tenant_id, id=account.id)


async def list_accounts(tx: Tx, filters: ProviderAccountList, *, after: str | None, limit: int) -> list[AccountRow]:
    """Accounts in the tenant's view, by id."""
    return await tx.many(_LIST, tenant_id=filters.tenant_id, provider=filters.provider, after=after, limit=limit)


async def list_owned_accounts(tx: Tx, *, tenant_id: str) -> list[OwnedAccount]:
    """Every account of the tenant, by name, in one statement."""
    return await tx.many(_LIST_OWNED, tenant_id=tenant_id)


async def list_pools(tx: Tx, account: AccountRow) -> list[str]:
    """The first few remaining pools that buy through the account; archived ones are not among them."""
    return await tx.many(_LIST_POOLS, tenant_id=account.tenant_id, account_id=account.id)


async def count_naming(tx: Tx, secret_id: str) -> int:
    """How many accounts of the secret's tenant name it."""
    return await tx.one(_COUNT_NAMING, secret_id=secret_id)


async def list_secrets(tx: Tx, *, tenant_id: str) -> list[str]:
    """Every reference that names a secret of the tenant; for plans."""
    return await tx.many(_LIST_SECRETS, tenant_id=tenant_id)


def _found(account: AccountRow | None, account_id: str) -> AccountRow:
    if account is None:
        raise not_found("provider account", account_id)
    return account
