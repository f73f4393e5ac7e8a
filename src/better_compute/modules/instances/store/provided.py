"""Statements on instances of provider pools."""

from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.kernel.hot import hot_query
from better_compute.modules.instances.store import COLUMNS, InstanceRow
from better_compute.modules.providers.exports.servers import OPEN_CALL, OPEN_REFUSALS

_STEP: Final = "the step looks after the instances of every tenant; its key names one"


@dataclass(frozen=True, slots=True)
class AdmittedAtProvider:
    """What the hot statement answers."""

    keyed: bool
    created_at: int
    opened: bool
    charged: bool
    effects: bool


ADMIT: Final = hot_query(
    "instances.admit_provided",
    f"""instances_admit_provided_v1(%(id)s::text, %(tenant_id)s::text, %(pool_id)s::text, %(pool_version)s::bigint,
          %(owns_pool)s::boolean, %(project_id)s::text, %(name)s::text, %(flavor_id)s::text,
          %(flavor_version)s::bigint, %(flavor)s::text, %(shape)s::integer[], %(image_id)s::text, %(user_data)s::text,
          %(ssh_keys)s::text[], %(labels)s::text, %(created_by)s::text, %(message)s::text) as created_at,
        {OPEN_CALL} as opened,
        quotas_charge_v2(%(tenant_id)s::text, %(holders)s::text[], %(pool_id)s::text, %(owns_pool)s::boolean,
          %(charge_resources)s::text[], %(charge_amounts)s::text[]) as charged""",
    row=AdmittedAtProvider,
    refuses={
        **OPEN_REFUSALS,
        "instances_name": Refusal(
            ErrorCode.CONFLICT, "There is an instance {name} in this tenant already; choose another name."
        ),
    },
)

FIND_ANY: Final = Query(
    name="instances.find_any",
    sql=f"select {COLUMNS} from instances i where i.id = %(id)s",  # noqa: S608  # constants
    row=InstanceRow,
    crosses_tenants=_STEP,
)


@dataclass(frozen=True, slots=True)
class Ordered:
    """What only the provider gets of an instance."""

    user_data: str | None
    """Sealed."""
    ssh_keys: list[str]


FIND_ORDERED: Final = Query(
    name="instances.find_ordered",
    sql="""select case when state in ('deleting', 'deleted') then null else user_data end as user_data, ssh_keys
           from instances where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=Ordered,
)
