"""The relations that somebody holds, for the adapter, inside its transaction."""

from dataclasses import dataclass

from better_compute.db.tx import Tx
from better_compute.identity.people.exports import groups_of
from better_compute.identity.relations import store


@dataclass(frozen=True, slots=True)
class Relations:
    """What an identity holds in its tenant."""

    held: dict[tuple[str, str], tuple[str, ...]]
    """Relations in order, by type and id of the resource."""
    changes_at: int | None
    """Epoch milliseconds at which one ends; None: never by itself."""


async def relations_of(tx: Tx, *, tenant_id: str, identity_id: str) -> Relations:
    """Every relation that an identity holds now, by itself and through groups."""
    groups = await groups_of(tx, tenant_id=tenant_id, identity_id=identity_id)
    group_ids = [group.group_id for group in groups]
    rows = await tx.many(store.HELD_BY, tenant_id=tenant_id, identity_id=identity_id, group_ids=group_ids)
    held: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        held.setdefault((row.type, row.resource_id), set()).add(row.relation)
    return Relations(
        held={resource: tuple(sorted(relations)) for resource, relations in held.items()},
        changes_at=min((row.expires_at for row in rows if row.expires_at is not None), default=None),
    )
