"""Feature flags in SQL."""

from typing import Final

from better_compute.db.query import Query
from better_compute.identity.flags.rules import Flag, FlagTarget

DEFINED_IN: Final = Query(
    name="flags.defined_in",
    sql="""select id, tenant_id, key, default_value, rollout_percentage, kill_switch from iam.flags
           where tenant_id = any(%(tenant_ids)s::text[])""",
    row=Flag,
)

TARGETS_IN: Final = Query(
    name="flags.targets_in",
    sql="""select tenant_id, flag_id, source, value, locked,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at
           from iam.flag_targets
           where tenant_id = any(%(tenant_ids)s::text[]) and (expires_at is null or expires_at > now())""",
    row=FlagTarget,
)
