"""What a quota's numbers mean, without a database.

`used` may be above `max` after a cut or a withdrawn offer. That is no fault: nothing new fits, every release still
works, and what is available is 0 (design, section 7). A tenant that shares in grants of tenants above it is limited by
every row of its chain: the outermost grant, which must have a maximum, and below it whatever has one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from better_compute.base.errors import invalid
from better_compute.base.models import MAX_INTEGER
from better_compute.modules.quotas.schema import QuotaFit, ResourceQuota


class Row(Protocol):
    """One resource of one tenant's quota, as it is stored."""

    @property
    def tenant_id(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def max(self) -> int | None: ...
    @property
    def used(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Chain:
    """Whose rows limit a tenant in one pool."""

    tenant_id: str
    owns_pool: bool
    holders: tuple[str, ...] = ()
    """The tenants above it in whose grants it shares, outermost first."""

    @property
    def tenants(self) -> tuple[str, ...]:
        """Everybody whose row counts, outermost first, the tenant itself last."""
        return (*self.holders, self.tenant_id)


@dataclass(frozen=True, slots=True)
class Cap:
    """One maximum that applies, and what was used under it."""

    tenant_id: str
    max: int
    used: int

    @property
    def room(self) -> int:
        """What still fits under it."""
        return max(self.max - self.used, 0)


def available(maximum: int | None, used: int) -> int | None:
    """What is left under a maximum, never below 0; None without one."""
    return None if maximum is None else max(maximum - used, 0)


def arrays(amounts: Mapping[str, int]) -> tuple[list[str], list[int]]:
    """Amounts as the SQL functions take them, in the order in which rows are locked."""
    ordered = sorted(amounts.items())
    return [resource for resource, _ in ordered], [amount for _, amount in ordered]


def caps(chain: Chain, rows: Iterable[Row], resource: str) -> list[Cap]:
    """Every maximum that limits a resource, outermost first; none at all is what only an owner can have."""
    grantor = chain.tenants[0]
    found = {row.tenant_id: row for row in rows if row.resource == resource}
    ordered = [(tenant, found.get(tenant)) for tenant in chain.tenants]
    limiting = [Cap(tenant, row.max, row.used) for tenant, row in ordered if row is not None and row.max is not None]
    if chain.owns_pool or any(cap.tenant_id == grantor for cap in limiting):
        return limiting
    row = found.get(grantor)
    return [Cap(grantor, 0, 0 if row is None else row.used), *limiting]


def tightest(chain: Chain, rows: Iterable[Row], resource: str) -> Cap | None:
    """The cap with the least room, the outermost of equals; None without any."""
    return min(caps(chain, rows, resource), key=lambda cap: cap.room, default=None)


def standings(chain: Chain, rows: Sequence[Row]) -> list[ResourceQuota]:
    """A tenant's quota in a pool by resource: what it uses itself, and what its chain leaves it."""
    grantor = chain.tenants[0]
    used = {row.resource: row.used for row in rows if row.tenant_id == chain.tenant_id}
    named = {row.resource for row in rows if row.tenant_id == grantor and row.max is not None} | set(used)
    return [
        ResourceQuota(
            resource=resource,
            max=min((cap.max for cap in applying), default=None),
            used=used.get(resource, 0),
            available=min((cap.room for cap in applying), default=None),
        )
        for resource in sorted(named)
        for applying in (caps(chain, rows, resource),)
    ]


def limits(chain: Chain, rows: Sequence[Row]) -> dict[str, int]:
    """The most a tenant may use of each resource; one that is missing is unlimited for an owner and 0 for others."""
    return {one.resource: one.max for one in standings(chain, rows) if one.max is not None}


def check_asked(*, flavor: str | None, amounts: Mapping[str, int] | None) -> None:
    """INVALID_INPUT unless exactly one of flavor and amounts says what is wanted."""
    if (flavor is None) == (amounts is None):
        raise invalid("flavor", "give either a flavor or amounts")


def asked(amounts: Mapping[str, int], count: int) -> dict[str, int]:
    """What so many of them need together; INVALID_INPUT beyond what a number can hold."""
    wanted = {resource: amount * count for resource, amount in sorted(amounts.items()) if amount}
    if any(amount > MAX_INTEGER for amount in wanted.values()):
        raise invalid("count", "is too large for these amounts")
    return wanted


def fits(chain: Chain, rows: Sequence[Row], wanted: Mapping[str, int]) -> list[QuotaFit]:
    """Each wanted resource beside the cap that binds it."""
    found: list[QuotaFit] = []
    for resource, amount in wanted.items():
        cap = tightest(chain, rows, resource)
        found.append(
            QuotaFit(
                resource=resource,
                requested=amount,
                missing=0 if cap is None else max(amount - cap.room, 0),
                available=None if cap is None else cap.room,
                max=None if cap is None else cap.max,
                used=None if cap is None else cap.used,
                limit_tenant_id=None if cap is None else cap.tenant_id,
            )
        )
    return found
