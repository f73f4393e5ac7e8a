"""Why a template of a document cannot be as it is written, in words that say what to do.

What a template names must exist once the plan is applied: a pool of the tenant's own by name or one it was offered by
id, a flavor of that pool, an image, volumes of that pool, secrets. Only what a plan is about to write is looked at: a
template that stays as it is may name what has gone since, and an export of it plans empty. What the same plan deletes
under a template is blocked all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.diff import same_value
from better_compute.base.items import Live, Opaque, Wanted, World, refusal_of
from better_compute.base.secrets import TenantSecret, parse_reference
from better_compute.modules.sandboxes.rules.templates import (
    PoolFacts,
    check_disk,
    check_mounts,
    check_pool,
    references,
    settled_ttls,
)

KIND: Final = "sandboxTemplate"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What templates may name beside the tenant's own fleet."""

    images: Mapping[str, int]
    """By id and by name; the disk that each needs, in GiB."""
    volumes: Mapping[str, str | None]
    """By name; the id of the pool of each, None for any."""
    secrets: frozenset[str]
    """By id."""
    pools: Mapping[str, PoolFacts]
    """Pools of other tenants that this one sees, by id."""
    flavors: Mapping[tuple[str, str], int]
    """Flavors of those pools, by pool id and name; the disk that each has, in GiB."""


@dataclass(frozen=True, slots=True)
class Case:
    """One template of a document, beside what it is now and what surrounds it."""

    world: World
    wanted: Wanted
    live: Live | None
    whole: Mapping[str, Any]
    """As it will be."""
    around: Surroundings

    @property
    def pool(self) -> str:
        """The pool as the document names it."""
        return str(self.whole["pool"])

    @property
    def owns_pool(self) -> bool:
        return self.world.values("pool", (self.pool,)) is not None

    @property
    def pool_id(self) -> str | None:
        """The id of the pool; None for one that the same plan creates."""
        if not self.owns_pool:
            return self.pool
        live = self.world.live("pool", (self.pool,))
        return None if live is None else live.ident

    def pool_facts(self) -> PoolFacts | None:
        """The pool as it will be; None when there is none."""
        own = self.world.values("pool", (self.pool,))
        if own is None:
            return self.around.pools.get(self.pool)
        return PoolFacts(
            id=self.pool, pool_class=str(own["class"]), archived=False, runtime=(own.get("policy") or {}).get("runtime")
        )

    def disk(self) -> int | None:
        """The disk of the flavor as it will be; None when there is no such flavor."""
        flavor = str(self.whole["flavor"])
        if not self.owns_pool:
            return self.around.flavors.get((self.pool, flavor))
        own = self.world.values("flavor", (self.pool, flavor))
        return None if own is None else int(own["diskGiB"])

    def writes(self, name: str) -> bool:
        """Whether the plan writes this field."""
        if name not in self.wanted.values:
            return False
        wanted = self.wanted.values[name]
        return self.live is None or not same_value(_plain(self.live.values.get(name)), _plain(wanted))


def template_block(world: World, wanted: Wanted, live: Live | None) -> str | None:
    """The first reason why the template cannot be written so, or None."""
    whole = world.values(KIND, wanted.key) or {}
    case = Case(world=world, wanted=wanted, live=live, whole=whole, around=world.facts(KIND))
    checks: Sequence[Callable[[Case], str | None]] = (_pool, _flavor, _image, _volumes, _secrets, _user_data, _ttls)
    return next((reason for check in checks if (reason := check(case)) is not None), None)


def _pool(case: Case) -> str | None:
    if not case.owns_pool and case.world.live("pool", (case.pool,)) is not None:
        return f"the pool {case.pool} is deleted by the same plan; keep it in the document"
    if case.live is not None:
        return None
    pool = case.pool_facts()
    if pool is None:
        return (
            f"there is no pool {case.pool} in this document or this fleet, and none of that id was offered to this "
            "tenant; add it or correct the name"
        )
    return refusal_of(lambda: check_pool(pool, runtime=case.wanted.values.get("runtime")))


def _flavor(case: Case) -> str | None:
    flavor = str(case.whole["flavor"])
    if case.disk() is not None:
        return None
    if case.owns_pool and case.world.live("flavor", (case.pool, flavor)) is not None:
        return f"the flavor {flavor} of its pool is deleted by the same plan; keep it in the document"
    if not case.writes("flavor"):
        return None
    return f"there is no flavor {flavor} in the pool {case.pool}; add it or correct the name"


def _image(case: Case) -> str | None:
    image = str(case.whole["imageId"])
    needs = case.around.images.get(image)
    if needs is None:
        return f"there is no image {image} in this tenant's view; make it first" if case.writes("imageId") else None
    has = case.disk()
    if has is None or not (case.writes("imageId") or case.writes("flavor")):
        return None
    return refusal_of(lambda: check_disk(image=image, needs_gib=needs, flavor=str(case.whole["flavor"]), has_gib=has))


def _volumes(case: Case) -> str | None:
    if not case.writes("volumes"):
        return None
    mounts: Sequence[Mapping[str, Any]] = case.wanted.values["volumes"]
    for mount in mounts:
        if mount["volume"] not in case.around.volumes:
            return f"there is no sandbox volume {mount['volume']}; fleet makes none, use sandboxVolumes.create"
    pool_id = case.pool_id or f"{case.pool} of this plan"
    return refusal_of(lambda: check_mounts(mounts, case.around.volumes, pool_id=pool_id))


def _secrets(case: Case) -> str | None:
    env = case.wanted.values["env"] if case.writes("env") else {}
    user_data = case.wanted.values["userData"] if case.writes("userData") else None
    for path, text in references(env, user_data if isinstance(user_data, str) else None).items():
        reference = parse_reference(text)
        if not isinstance(reference, TenantSecret) or reference.tenant_id != case.world.tenant_id:
            return f"{path} names a secret of another tenant; use one of this tenant's own"
        if reference.secret_id not in case.around.secrets:
            return f"{path} names a secret that is not there; make it first, or correct the id"
    return None


def _user_data(case: Case) -> str | None:
    given = case.wanted.values.get("userData")
    if not isinstance(given, Opaque) or given.text is not None or not case.writes("userData"):
        return None
    return "userData is the digest of a text that an export does not show; write the text itself"


def _ttls(case: Case) -> str | None:
    default, longest = case.whole.get("defaultTtlSeconds"), case.whole.get("maxTtlSeconds")
    return refusal_of(lambda: _check_ttls(default, longest))


def _check_ttls(default: int | None, longest: int | None) -> None:
    settled_ttls(default, longest)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Opaque) else value
