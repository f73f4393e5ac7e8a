"""The IAM port, filled from our own tables.

Asking it what it was asked before does not touch the database: callers, what they may do, and flags are remembered
until anything in the IAM changes (see `freshness.py`). It decides in the caller's own tenant alone; what reaches beyond
is root override: root authority, a person's session, and a second factor, all three (seed 004, The root tenant).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from better_compute.base.clock import Clock, SystemClock
from better_compute.base.errors import ComputeError
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.iam.policy.evaluate import Miss
from better_compute.identity.embedded.exports.access import Access, Accesses
from better_compute.identity.embedded.exports.authentication import Authentication
from better_compute.identity.embedded.exports.freshness import LOOK_SECONDS, Freshness
from better_compute.identity.flags.exports import Features, features_of
from better_compute.identity.iam.schema import Credential
from better_compute.identity.people.schema import Identity
from better_compute.identity.tenants import exports as tenants
from better_compute.identity.tenants.schema import TenantRecord
from better_compute.kernel.iam import Check, Decision, Tenant, TenantStatus
from better_compute.kernel.observe import log
from better_compute.kernel.principal import Caller
from better_compute.kernel.sealing import Sealer

MAX_ACCESSES: Final = 20_000
WRITE_USES_SECONDS: Final = 15.0

_OVERRIDE: Final = Decision(allowed=True, reason="ROOT_OVERRIDE", root_override=True)
_MISMATCH: Final = Decision(allowed=False, reason="TENANT_MISMATCH")
_MISSING: Final = Decision(allowed=False, reason="TENANT_MISSING")
_UNKNOWN_ACTION: Final = Decision(allowed=False, reason="UNKNOWN_ACTION")
_NOBODY: Final = Decision(allowed=False, reason="PRINCIPAL_INACTIVE")


class EmbeddedIam:
    """The embedded IAM of one process."""

    def __init__(self, database: Database, *, sealer: Sealer, root_tenant_id: str, clock: Clock | None = None) -> None:
        self.root_tenant_id = root_tenant_id
        self.sealer = sealer
        self._database = database
        self._freshness = Freshness(database, clock or SystemClock(), drop=self._drop)
        self._authentication = Authentication(database, self._freshness, root_tenant_id=root_tenant_id)
        self._accesses = Accesses()
        self._known_accesses: OrderedDict[str, Access] = OrderedDict()
        self._features: dict[str, Features] = {}
        self._tenants: dict[str, Tenant] = {}

    def changed(self) -> None:
        """Forgets what is cached, after this process changed something in the IAM."""
        self._freshness.changed()

    async def watch(self, stop: asyncio.Event) -> None:
        """Looks for changes every second, and writes when keys and sessions were last used, until `stop` is set."""
        loop = asyncio.get_running_loop()
        write_at = loop.time() + WRITE_USES_SECONDS
        while not stop.is_set():
            try:
                await self._freshness.look()
                if loop.time() >= write_at:
                    write_at = loop.time() + WRITE_USES_SECONDS
                    await self.write_uses()
            except ComputeError as error:
                log.warning("iam out of reach", error=str(error))
            await _wait(stop, LOOK_SECONDS * 0.75)
        await self.write_uses()

    async def write_uses(self) -> None:
        """Writes when keys and sessions were last used; `watch` does it now and then."""
        await self._authentication.write_uses()

    async def authenticate(self, credential: str) -> Caller:
        """The caller behind a bearer token; UNAUTHENTICATED, or TENANT_INACTIVE when its tenant is not active."""
        return await self._authentication.caller(credential)

    async def decide(self, caller: Caller, check: Check) -> Decision:
        """Decides in the tenant of `check.resource`; never raises for a refusal."""
        settled = await self._before_policies(caller, check.action, check.resource.tenant_id)
        if settled is not None:
            return settled
        access = await self._access(caller)
        return _NOBODY if access is None else self._by_policies(access, check)

    async def judge(
        self, tx: Tx, caller: Caller, check: Check, *, misses: list[Miss]
    ) -> tuple[Decision, Access | None]:
        """Decides as `decide` does, on what stands in the database now; answers what the decision rested on too.

        No access means that policies were not asked. `misses` gets every statement that nearly counted.
        """
        settled = await self._before_policies(caller, check.action, check.resource.tenant_id)
        if settled is not None:
            return settled, None
        access = await self._accesses.read(tx, caller)
        return (_NOBODY, None) if access is None else (self._by_policies(access, check, misses=misses), access)

    async def judge_type(self, tx: Tx, caller: Caller, check: Check) -> bool | None:
        """Decides as `decide_type` does, on what stands in the database now; only the resource's type counts."""
        settled = await self._before_policies(caller, check.action, check.resource.tenant_id)
        if settled is not None:
            return settled.allowed
        access = await self._accesses.read(tx, caller)
        return False if access is None else access.policies.uniform(check.action, check.resource.type)

    async def stand_in(self, tx: Tx, ident: Identity, *, key: Credential | None) -> Caller:
        """The caller that somebody is with a key, or with whatever they sign in with; for explanations."""
        return await self._authentication.stand_in(tx, ident, key=key)

    async def decide_many(self, caller: Caller, checks: Sequence[Check]) -> list[Decision]:
        """The same for many, in the order asked."""
        return [await self.decide(caller, check) for check in checks]

    async def decide_type(self, caller: Caller, tenant_id: str, action: str, resource_type: str) -> bool | None:
        """True when allowed on every resource of the type, False when on none, None when it depends."""
        settled = await self._before_policies(caller, action, tenant_id)
        if settled is not None:
            return settled.allowed
        access = await self._access(caller)
        return False if access is None else access.policies.uniform(action, resource_type)

    async def feature_enabled(self, tenant_id: str, key: str) -> bool:
        """Whether a feature flag is on for a tenant; an unknown flag is off."""
        await self._freshness.ensure()
        known = self._features.get(tenant_id)
        if known is None or _is_over(known.changes_at, self._freshness.now_ms()):
            epoch = self._freshness.epoch
            async with self._database.transaction(read_only=True, isolation="repeatable read") as tx:
                chain = await tenants.ancestry(tx, tenant_id)
                known = await features_of(tx, [tenant.id for tenant in chain])
            if epoch == self._freshness.epoch:
                self._features[tenant_id] = known
        return key in known.on

    async def tenant(self, tenant_id: str) -> Tenant:
        """One tenant; status `missing` when there is none of that id."""
        async with self._database.transaction(read_only=True) as tx:
            found = await tenants.find_tenant(tx, tenant_id)
        return Tenant(id=tenant_id, status="missing") if found is None else _as_tenant(found)

    async def tenant_by_slug(self, slug: str) -> Tenant | None:
        """The tenant with this slug."""
        async with self._database.transaction(read_only=True) as tx:
            found = await tenants.by_slug(tx, slug)
        return None if found is None else _as_tenant(found)

    async def subtree(self, tenant_id: str) -> list[Tenant]:
        """A tenant and every tenant below it, with effective statuses; empty when there is no such tenant."""
        async with self._database.transaction(read_only=True) as tx:
            return [_as_tenant(found) for found in await tenants.find_subtree(tx, tenant_id)]

    async def inactive_tenants(self) -> Mapping[str, TenantStatus]:
        """Every tenant that is suspended or deleted, for the tenant gate."""
        async with self._database.transaction(read_only=True) as tx:
            return {tenant.id: tenant.status for tenant in await tenants.inactive(tx)}

    async def _before_policies(self, caller: Caller, action: str, tenant_id: str) -> Decision | None:
        """What is decided without any policy: root override, and whatever reaches into another tenant."""
        if caller.can_override:
            return await self._override(action, tenant_id)
        return _MISMATCH if caller.tenant_id != tenant_id else None

    def _by_policies(self, access: Access, check: Check, *, misses: list[Miss] | None = None) -> Decision:
        return access.decide(check.action, check.resource, now_ms=self._freshness.now_ms(), misses=misses)

    async def _override(self, action: str, tenant_id: str) -> Decision:
        """Root override reaches every tenant and skips policies, but not a tenant that never was."""
        if not action:
            return _UNKNOWN_ACTION
        await self._freshness.ensure()
        if tenant_id not in self._tenants:
            epoch = self._freshness.epoch
            tenant = await self.tenant(tenant_id)
            if tenant.status == "missing":
                return _MISSING
            if epoch == self._freshness.epoch:
                self._tenants[tenant_id] = tenant
        return _OVERRIDE

    async def _access(self, caller: Caller) -> Access | None:
        await self._freshness.ensure()
        key = caller.session_id or caller.id
        known = self._known_accesses.get(key)
        if known is not None and not _is_over(known.changes_at, self._freshness.now_ms()):
            return known
        epoch = self._freshness.epoch
        async with self._database.transaction(read_only=True, isolation="repeatable read") as tx:
            access = await self._accesses.read(tx, caller)
        if access is not None and epoch == self._freshness.epoch:
            self._known_accesses[key] = access
            if len(self._known_accesses) > MAX_ACCESSES:
                self._known_accesses.popitem(last=False)
        return access

    def _drop(self) -> None:
        self._authentication.drop()
        self._known_accesses.clear()
        self._features.clear()
        self._tenants.clear()


def _is_over(changes_at: int | None, now_ms: int) -> bool:
    return changes_at is not None and changes_at <= now_ms


def _as_tenant(found: TenantRecord) -> Tenant:
    return Tenant(
        id=found.id,
        status=found.effective_status,
        parent_id=found.parent_id,
        slug=found.slug,
        name=found.name,
    )


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
