"""Statements on instances."""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.kernel.hot import hot_query
from better_compute.kernel.resealing import SealedColumn
from better_compute.modules.capacity.exports import CLAIM_CALL
from better_compute.modules.flavors.exports import charges
from better_compute.modules.instances.schema import Power, State

USER_DATA: Final = SealedColumn(table="instances", column="user_data", key=("id",), purpose="user-data:{id}")
"""What instances start with; kept sealed."""

NODE: Final = "a node runs instances of many tenants; the host or the reconciler asks for all of them"


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance as it is stored, without its user data."""

    id: str
    tenant_id: str
    pool_id: str
    owns_pool: bool
    project_id: str | None
    name: str
    flavor: str
    vcpu: int
    memory_gib: int
    disk_gib: int
    gpus: int
    placement: dict[str, Any] | None
    image_id: str
    labels: dict[str, str]
    state: State
    reason: str
    message: str
    power: Power
    reboots: int
    conditions: list[dict[str, Any]]
    allocation_id: str
    """Empty in a provider pool."""
    node_id: str
    """Empty in a provider pool."""
    generation: int
    created_at: int
    changed_at: int
    deleted_at: int | None
    gone: bool
    charged_to: list[str]
    """The tenants above whose quota rows were charged too."""

    @property
    def provided(self) -> bool:
        """Whether it is a provider's server, and not a guest on a node."""
        return not self.node_id

    @property
    def charges(self) -> dict[str, int]:
        """What its quota was charged."""
        return charges(vcpu=self.vcpu, memory_gib=self.memory_gib, disk_gib=self.disk_gib, gpus=self.gpus)


COLUMNS: Final = """i.id, i.tenant_id, i.pool_id, i.owns_pool, i.project_id, i.name, i.flavor, i.vcpu, i.memory_gib,
  i.disk_gib, i.gpus, i.placement, i.image_id, i.labels, i.state, i.reason, i.message, i.power, i.reboots, i.conditions,
  coalesce(i.allocation_id, '') as allocation_id, coalesce(i.node_id, '') as node_id, i.generation,
  (extract(epoch from i.created_at) * 1000)::bigint as created_at,
  (extract(epoch from i.changed_at) * 1000)::bigint as changed_at,
  (extract(epoch from i.deleted_at) * 1000)::bigint as deleted_at, i.gone_at is not null as gone,
  i.charged_to"""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the hot statement answers."""

    keyed: bool
    admitted: str
    """`created,node,generation,free,…`, see `instances_admit_v1`."""
    charged: bool
    effects: bool


ADMIT: Final = hot_query(
    "instances.admit",
    f"""instances_admit_v1({CLAIM_CALL}, %(id)s::text, %(tenant_id)s::text, %(pool_id)s::text,
          %(pool_version)s::bigint, %(owns_pool)s::boolean, %(project_id)s::text, %(name)s::text, %(flavor_id)s::text,
          %(flavor_version)s::bigint, %(flavor)s::text, %(shape)s::integer[], %(placement)s::text, %(image_id)s::text,
          %(user_data)s::text, %(ssh_keys)s::text[], %(labels)s::text, %(allocation_id)s::text, %(basis)s::bigint,
          %(host_placement)s::text, %(conditions)s::text, %(created_by)s::text) as admitted,
        quotas_charge_v2(%(tenant_id)s::text, %(holders)s::text[], %(pool_id)s::text, %(owns_pool)s::boolean,
          %(charge_resources)s::text[], %(charge_amounts)s::text[]) as charged""",
    row=Admitted,
    refuses={
        "instances_name": Refusal(
            ErrorCode.CONFLICT, "There is an instance {name} in this tenant already; choose another name."
        )
    },
)

FIND: Final = Query(
    name="instances.find",
    sql=f"select {COLUMNS} from instances i where i.tenant_id = %(tenant_id)s and i.id = %(id)s",  # noqa: S608  # constants
    row=InstanceRow,
)

LOCK: Final = Query(
    name="instances.lock",
    sql=f"""select {COLUMNS} from instances i where i.tenant_id = %(tenant_id)s and i.id = %(id)s
            for no key update""",  # noqa: S608  # constants
    row=InstanceRow,
)

LIST: Final = Query(
    name="instances.list",
    sql=f"""select {COLUMNS} from instances i
            join projection p on p.tenant_id = %(tenant_id)s and p.type = 'compute-instance' and p.id = i.id
            where i.tenant_id = %(tenant_id)s
              and (%(pool_id)s::text is null or i.pool_id = %(pool_id)s::text)
              and (%(project_id)s::text is null or i.project_id = %(project_id)s::text)
              and case when %(state)s::text is null then i.state <> 'deleted' else i.state = %(state)s::text end
              and (%(after)s::text is null or i.id > %(after)s::text)
            order by i.id limit %(limit)s""",  # noqa: S608  # constants
    row=InstanceRow,
)

MOVE: Final = Query(
    name="instances.move",
    sql=f"""update instances i set state = %(state)s, reason = %(reason)s, message = %(message)s, power = %(power)s,
              reboots = i.reboots + %(reboots)s, generation = %(generation)s, conditions = %(conditions)s::jsonb,
              changed_at = now(), deleted_at = case when %(state)s = 'deleted' then coalesce(i.deleted_at, now()) end,
              gone_at = case when %(gone)s then now() else i.gone_at end
            where i.tenant_id = %(tenant_id)s and i.id = %(id)s returning {COLUMNS}""",  # noqa: S608  # constants
    row=InstanceRow,
)

LIST_ON_NODE: Final = Query(
    name="instances.list_on_node",
    sql=f"select {COLUMNS} from instances i where i.node_id = %(node_id)s and i.gone_at is null order by i.id",  # noqa: S608  # constants
    row=InstanceRow,
    crosses_tenants=NODE,
)


@dataclass(frozen=True, slots=True)
class Inside:
    """What only the host gets of an instance."""

    id: str
    user_data: str | None
    """Sealed."""
    ssh_keys: list[str]
    host_placement: dict[str, Any] | None


LIST_INSIDES: Final = Query(
    name="instances.list_insides",
    sql="""select id, user_data, ssh_keys, host_placement from instances
           where node_id = %(node_id)s and gone_at is null and state not in ('deleting', 'deleted')""",
    row=Inside,
    crosses_tenants=NODE,
)


@dataclass(frozen=True, slots=True)
class NeighbourRow:
    """A guest on a node, as the choice of a host placement sees it."""

    host_placement: dict[str, Any]
    memory_gib: int


@dataclass(frozen=True, slots=True)
class HostRow:
    """A node as the choice of a host placement sees it."""

    inventory: str
    policy: dict[str, Any]
    generation: int


FIND_HOST: Final = Query(
    name="instances.find_host",
    sql="""select n.inventory::text as inventory, p.policy, r.generation from nodes n
           join pools p on p.id = n.pool_id
           join node_resources r on r.node_id = n.id and r.resource = 'vcpu'
           where n.id = %(node_id)s and n.inventory is not null""",
    row=HostRow,
    crosses_tenants=NODE,
)

LIST_NEIGHBOURS: Final = Query(
    name="instances.list_neighbours",
    sql="""select host_placement, memory_gib from instances
           where node_id = %(node_id)s and gone_at is null and host_placement is not null""",
    row=NeighbourRow,
    crosses_tenants=NODE,
)

LOCK_FLAVOR: Final = Query(
    name="instances.lock_flavor",
    sql="select pg_advisory_xact_lock(hashtextextended(%(flavor_id)s, 0))",
    row=NoneType,
    crosses_tenants="a flavor's users belong to every tenant the pool was offered to",
)

COUNT_OF_FLAVOR: Final = Query(
    name="instances.count_of_flavor",
    sql="select count(*) from instances where flavor_id = %(flavor_id)s",
    row=int,
    crosses_tenants="a flavor's users belong to every tenant the pool was offered to",
)

COUNT_OF_IMAGE: Final = Query(
    name="instances.count_of_image",
    sql="select count(*) from instances where image_id = %(image_id)s and gone_at is null",
    row=int,
    crosses_tenants="a public image's users belong to every tenant",
)
