"""Pure rules of sandbox templates: what the server fills in, what fits together, and what a plan must not let pass.

`Settled` is a template as it will be stored. The same function settles it for a create, an update and a plan, so that a
plan is blocked exactly where the call would be refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import invalid
from better_compute.base.items import digest_of
from better_compute.base.secrets import TenantSecret, parse_reference

TEMPLATE: Final = "compute-sandbox-template"
VOLUME: Final = "compute-sandbox-volume"

POOL_CLASS: Final = "vps-host"
"""What sandboxes run in: guests of hosts of our own."""

DEFAULT_TTL: Final = 3600
LONGEST_TTL: Final = 86_400


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What a template needs to know of its pool."""

    id: str
    pool_class: str
    archived: bool
    runtime: str | None

    @classmethod
    def seen(cls, pool_id: str, attributes: Mapping[str, Any]) -> "PoolFacts":
        """From the pool as it stands in the tenant's view."""
        return cls(
            id=pool_id,
            pool_class=str(attributes.get("class")),
            archived=bool(attributes.get("archived")),
            runtime=attributes.get("runtime"),
        )


def check_pool(pool: PoolFacts, *, runtime: str | None) -> None:
    """INVALID_INPUT for a pool that sandboxes cannot run in, or for a runtime that is not the pool's."""
    if pool.archived:
        raise invalid("poolId", f"the pool {pool.id} is archived and takes nothing new")
    if pool.pool_class != POOL_CLASS:
        raise invalid("poolId", f"sandboxes run in pools of class {POOL_CLASS}; this one is {pool.pool_class}")
    if runtime is not None and runtime != pool.runtime:
        theirs = "has none of its own" if pool.runtime is None else f"has {pool.runtime}"
        raise invalid("runtime", f"must be the pool's, which {theirs}; leave it out")


def settled_ttls(default: int | None, longest: int | None) -> tuple[int, int]:
    """The lives with what the server fills in; INVALID_INPUT for a default above the longest."""
    if default is None:
        default = min(DEFAULT_TTL, LONGEST_TTL if longest is None else longest)
    if longest is None:
        longest = max(LONGEST_TTL, default)
    if default > longest:
        raise invalid("defaultTtlSeconds", f"{default} is above maxTtlSeconds, which is {longest}; write both")
    return default, longest


def settled_warm(warm: Mapping[str, Any] | None) -> dict[str, int]:
    """The whole range: none where nobody asked for any, exactly the minimum without a maximum."""
    least = 0 if warm is None else int(warm["min"])
    most = least if warm is None or warm.get("max") is None else int(warm["max"])
    return {"min": least, "max": most}


def settled_mounts(mounts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The mounts in full, in their order."""
    return [{**mount, "readOnly": bool(mount.get("readOnly", False))} for mount in mounts]


def check_mounts(mounts: Sequence[Mapping[str, Any]], pools: Mapping[str, str | None], *, pool_id: str) -> None:
    """INVALID_INPUT for a volume whose data is in another pool; `pools` has each volume's, None for any."""
    for index, mount in enumerate(mounts):
        if pools[mount["volume"]] not in {None, pool_id}:
            raise invalid(
                f"volumes[{index}].volume",
                f"the volume {mount['volume']} is in the pool {pools[mount['volume']]}, not in the template's",
            )


def check_disk(*, image: str, needs_gib: int, flavor: str, has_gib: int) -> None:
    """INVALID_INPUT for an image that the flavor's disk cannot hold."""
    if needs_gib > has_gib:
        raise invalid(
            "flavor", f"the image {image} needs {needs_gib} GiB of disk and the flavor {flavor} has {has_gib}"
        )


def is_reference(user_data: str) -> bool:
    """Whether user data is a reference to a secret, and no text of its own."""
    return isinstance(parse_reference(user_data), TenantSecret)


def shown_user_data(user_data: str) -> str:
    """What may be told of user data: a reference as it is, of a text its digest."""
    return user_data if is_reference(user_data) else digest_of(user_data)


def references(env: Mapping[str, str] | None, user_data: str | None) -> dict[str, str]:
    """Every reference to a secret by the path at which it stands."""
    found = {f"env.{name}": text for name, text in (env or {}).items()}
    if user_data is not None and is_reference(user_data):
        found["userData"] = user_data
    return found


def secret_ids(env: Mapping[str, str], shown: str | None) -> list[str]:
    """The ids of the secrets that a template refers to, sorted."""
    parsed = [parse_reference(text) for text in references(env, shown).values()]
    return sorted({one.secret_id for one in parsed if isinstance(one, TenantSecret)})
