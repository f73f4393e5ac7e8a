"""Statements on nodes, their tokens, and what they reported.

Nodes belong to the pool's owner. Statements of the host link name a node that proved who it is, and cross tenants for
that reason alone.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.kernel.resources import Resource
from better_compute.modules.nodes.schema import Node, NodeState

TYPE: Final = "compute-node"
HOST: Final = "a host acts for itself: it proved which node it is, and a node has one tenant"

_NODE: Final = """n.id, n.pool_id, n.hostname, n.state, n.labels, n.conditions, n.daemon_version, n.generation_reached,
  (extract(epoch from n.created_at) * 1000)::bigint as created_at,
  (extract(epoch from n.last_seen_at) * 1000)::bigint as last_seen_at"""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as the rules need it."""

    id: str
    tenant_id: str
    pool_id: str
    tenant_owned: bool
    hostname: str
    state: NodeState
    lost_from: NodeState | None
    created_by: str
    public_key: str | None
    inventory_hash: str | None
    boot_id: str | None
    sequence: int | None


_ROW: Final = """n.id, n.tenant_id, n.pool_id, n.tenant_owned, n.hostname, n.state, n.lost_from, n.created_by,
  n.public_key, n.inventory_hash, n.boot_id, n.sequence"""

INSERT: Final = Query(
    name="nodes.insert",
    sql="""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by)
           values (%(id)s, %(tenant_id)s, %(pool_id)s, %(tenant_owned)s, 'enrolling', %(created_by)s)""",
    row=NoneType,
)

INSERT_ENROLMENT: Final = Query(
    name="nodes.insert_enrolment",
    sql="""insert into node_enrolments (token_hash, tenant_id, node_id, expires_at)
           values (%(token_hash)s, %(tenant_id)s, %(node_id)s, now() + make_interval(secs => %(seconds)s))
           returning (extract(epoch from expires_at) * 1000)::bigint""",
    row=int,
)

GET: Final = Query(
    name="nodes.get",
    sql=f"select {_NODE} from nodes n where n.tenant_id = %(tenant_id)s and n.id = %(id)s",  # noqa: S608  # constants
    row=Node,
)

LIST: Final = Query(
    name="nodes.list",
    sql=f"""select {_NODE} from nodes n
            join projection p on p.tenant_id = %(tenant_id)s and p.type = 'compute-node' and p.id = n.id
            where n.tenant_id = %(tenant_id)s
              and (%(pool_id)s::text is null or n.pool_id = %(pool_id)s)
              and (%(state)s::text is null or n.state = %(state)s)
              and (%(after)s::text is null or n.id > %(after)s)
            order by n.id limit %(limit)s""",  # noqa: S608  # constants
    row=Node,
)

LOCK: Final = Query(
    name="nodes.lock",
    sql=f"select {_ROW} from nodes n where n.id = %(id)s for no key update",  # noqa: S608  # constants
    row=NodeRow,
    crosses_tenants=HOST,
)

SET_STATE: Final = Query(
    name="nodes.set_state",
    sql="""update nodes set state = %(state)s, lost_from = %(lost_from)s
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=NoneType,
)


@dataclass(frozen=True, slots=True)
class StoredInventory:
    """What a node last reported to have."""

    inventory_hash: str
    inventory: dict[str, Any]


FIND_INVENTORY: Final = Query(
    name="nodes.find_inventory",
    sql="""select inventory_hash, inventory from nodes
           where tenant_id = %(tenant_id)s and id = %(id)s and inventory is not null""",
    row=StoredInventory,
)

END_SESSIONS: Final = Query(
    name="nodes.end_sessions",
    sql="delete from node_sessions where tenant_id = %(tenant_id)s and node_id = %(node_id)s",
    row=NoneType,
)

HAS_TENANT_OWNED: Final = Query(
    name="nodes.has_tenant_owned",
    sql="select count(*) from nodes where pool_id = %(pool_id)s and tenant_owned and state <> 'retired'",
    row=int,
    crosses_tenants="a pool's owner asks about all nodes of the pool",
)


@dataclass(frozen=True, slots=True)
class EnrolmentRow:
    """A one-time token and the node it is for."""

    node_id: str
    tenant_id: str
    expired: bool


FIND_ENROLMENT: Final = Query(
    name="nodes.find_enrolment",
    sql="""select node_id, tenant_id, expires_at < now() as expired from node_enrolments
           where token_hash = %(token_hash)s for update""",
    row=EnrolmentRow,
    crosses_tenants=HOST,
)

REGISTER: Final = Query(
    name="nodes.register",
    sql="""update nodes set public_key = %(public_key)s, hostname = %(hostname)s, labels = %(labels)s,
             daemon_version = %(daemon_version)s where id = %(id)s""",
    row=NoneType,
    crosses_tenants=HOST,
)

NOTE_HELLO: Final = Query(
    name="nodes.note_hello",
    sql="""insert into node_hellos (node_id, nonce) values (%(node_id)s, %(nonce)s)
           on conflict do nothing returning true""",
    row=bool,
    crosses_tenants=HOST,
)

FORGET_OLD: Final = Query(
    name="nodes.forget_old",
    sql="""with hellos as (delete from node_hellos
             where node_id = %(node_id)s and at < now() - make_interval(secs => %(seconds)s))
           delete from node_sessions where node_id = %(node_id)s and expires_at < now()""",
    row=NoneType,
    crosses_tenants=HOST,
)

INSERT_SESSION: Final = Query(
    name="nodes.insert_session",
    sql="""insert into node_sessions (token_hash, tenant_id, node_id, expires_at)
           values (%(token_hash)s, %(tenant_id)s, %(node_id)s, now() + make_interval(secs => %(seconds)s))
           returning (extract(epoch from expires_at) * 1000)::bigint""",
    row=int,
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A valid bearer token."""

    node_id: str
    left_seconds: float
    """How long it is still good."""


FIND_SESSION: Final = Query(
    name="nodes.find_session",
    sql="""select node_id, extract(epoch from expires_at - now())::float8 as left_seconds from node_sessions
           where token_hash = %(token_hash)s and expires_at > now()""",
    row=SessionRow,
    crosses_tenants=HOST,
)

STORE_REPORT: Final = Query(
    name="nodes.store_report",
    sql="""update nodes set boot_id = %(boot_id)s, sequence = %(sequence)s, daemon_version = %(daemon_version)s,
             labels = %(labels)s, conditions = %(conditions)s::jsonb, generation_reached = %(generation)s,
             state = %(state)s, last_seen_at = coalesce(last_seen_at, now()),
             clock_skew_ms = coalesce(%(clock_skew_ms)s, clock_skew_ms),
             inventory = coalesce(%(inventory)s::jsonb, inventory),
             inventory_hash = coalesce(%(inventory_hash)s, inventory_hash)
           where id = %(id)s and (boot_id is distinct from %(boot_id)s or sequence < %(sequence)s) returning true""",
    row=bool,
    crosses_tenants=HOST,
)


@dataclass(frozen=True, slots=True)
class Skewed:
    """A host whose clock is not the database's."""

    id: str
    hostname: str
    clock_skew_ms: int
    """How far it was ahead at its last report; negative when behind."""


LIST_SKEWED: Final = Query(
    name="nodes.list_skewed",
    sql="""select id, hostname, clock_skew_ms from nodes
           where state <> 'retired' and abs(clock_skew_ms) > %(tolerated_ms)s order by id""",
    row=Skewed,
    crosses_tenants="the doctor looks at the hosts of all tenants",
)

STORE_GUESTS: Final = Query(
    name="nodes.store_guests",
    sql="""insert into node_guests as g (node_id, instance_id, state, generation, conditions, message)
           select %(node_id)s, r."id", r.state, r.generation, r.conditions, r.message
           from jsonb_to_recordset(%(guests)s::jsonb)
             as r("id" text, state text, generation bigint, conditions jsonb, message text)
           order by r."id"
           on conflict (node_id, instance_id) do update
             set state = excluded.state, generation = excluded.generation, conditions = excluded.conditions,
               message = excluded.message, reported_at = now()
             where (g.state, g.generation, g.conditions, g.message)
               is distinct from (excluded.state, excluded.generation, excluded.conditions, excluded.message)
           returning instance_id""",
    row=str,
    crosses_tenants=HOST,
)

FORGET_GUESTS: Final = Query(
    name="nodes.forget_guests",
    sql="""delete from node_guests
           where node_id = %(node_id)s and state = 'deleted' and instance_id <> all(%(ids)s::text[])""",
    row=NoneType,
    crosses_tenants=HOST,
)

MARK_SEEN: Final = Query(
    name="nodes.mark_seen",
    sql="""with seen as (select id from nodes where id = any(%(ids)s) order by id for no key update)
           update nodes n set last_seen_at = now() from seen where n.id = seen.id""",
    row=NoneType,
    crosses_tenants="one statement writes the signs of life of many hosts, of whatever tenants",
)

KEEP_UP: Final = Query(
    name="nodes.keep_up",
    sql="""insert into platform_uptime as u (up_since, seen_at) values (now(), now())
           on conflict (single) do update set seen_at = now(),
             up_since = case when u.seen_at < now() - make_interval(secs => %(gap)s) then now() else u.up_since end""",
    row=NoneType,
    crosses_tenants="the platform's own uptime belongs to no tenant",
)

UPTIME: Final = Query(
    name="nodes.uptime",
    sql="select extract(epoch from now() - up_since)::float8 from platform_uptime",
    row=float,
    crosses_tenants="the platform's own uptime belongs to no tenant",
)


@dataclass(frozen=True, slots=True)
class SignRow:
    """A node that may have been lost or may have returned."""

    id: str
    state: NodeState
    lost_from: NodeState | None
    silent_seconds: float


LIST_SIGNS: Final = Query(
    name="nodes.list_signs",
    sql="""select id, state, lost_from, extract(epoch from now() - last_seen_at)::float8 as silent_seconds from nodes
           where last_seen_at is not null
             and (state = 'lost' and last_seen_at > now() - make_interval(secs => %(seconds)s)
               or state in ('ready', 'cordoned', 'draining')
                 and last_seen_at <= now() - make_interval(secs => %(seconds)s))
           order by id limit 1000""",
    row=SignRow,
    crosses_tenants="one look finds the silent hosts of all tenants",
)


@dataclass(frozen=True, slots=True)
class GuestRow:
    """What a host last reported about one guest."""

    instance_id: str
    state: str
    generation: int
    conditions: list[Any]
    message: str | None


LIST_GUESTS: Final = Query(
    name="nodes.list_guests",
    sql="""select instance_id, state, generation, conditions, message from node_guests
           where node_id = %(node_id)s order by instance_id""",
    row=GuestRow,
    crosses_tenants="guests of many tenants live on one node, whose owner is another one",
)


def node_resource(row: NodeRow, *, state: NodeState) -> Resource:
    """A node as policies see it."""
    return Resource(
        type=TYPE,
        id=row.id,
        tenant_id=row.tenant_id,
        owner_tenant_id=row.tenant_id,
        owner_id=row.created_by,
        parent_type="compute-pool",
        parent_id=row.pool_id,
        attributes={"poolId": row.pool_id, "state": state, "hostname": row.hostname},
    )
