"""Feature flags in SQL."""

from types import NoneType
from typing import Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.identity.flags.rules import Flag, FlagTarget

_FLAG: Final = """id, tenant_id, key, default_value, rollout_percentage, kill_switch, tenant_overridable, internal,
  description, (extract(epoch from created_at) * 1000)::bigint as created_at"""

DEFINED_IN: Final = Query(
    name="flags.defined_in",
    sql=f"select {_FLAG} from iam.flags where tenant_id = any(%(tenant_ids)s::text[])",  # noqa: S608  # a constant
    row=Flag,
)

LOCK: Final = Query(
    name="flags.lock",
    sql=f"select {_FLAG} from iam.flags where tenant_id = %(tenant_id)s and key = %(key)s for update",  # noqa: S608  # a constant
    row=Flag,
)

COUNT: Final = Query(
    name="flags.count",
    sql="select count(*)::integer from iam.flags where tenant_id = %(tenant_id)s",
    row=int,
)

INSERT: Final = Query(
    name="flags.insert",
    sql="""insert into iam.flags (id, tenant_id, key, default_value, rollout_percentage, kill_switch,
             tenant_overridable, internal, description)
           values (%(id)s, %(tenant_id)s, %(key)s, %(default_value)s, %(rollout_percentage)s, %(kill_switch)s,
             %(tenant_overridable)s, %(internal)s, %(description)s)""",
    row=NoneType,
    refuses={"flags_key": Refusal(ErrorCode.CONFLICT, "There is a flag {key} in this tenant already.")},
)

UPDATE: Final = Query(
    name="flags.update",
    sql="""update iam.flags set default_value = %(default_value)s, rollout_percentage = %(rollout_percentage)s,
             kill_switch = %(kill_switch)s, tenant_overridable = %(tenant_overridable)s, internal = %(internal)s,
             description = %(description)s
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=NoneType,
)

DELETE: Final = Query(
    name="flags.delete",
    sql="delete from iam.flags where tenant_id = %(tenant_id)s and key = %(key)s returning key",
    row=str,
)

TARGETS_IN: Final = Query(
    name="flags.targets_in",
    sql="""select tenant_id, flag_id, source, value, locked,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at
           from iam.flag_targets
           where tenant_id = any(%(tenant_ids)s::text[]) and (expires_at is null or expires_at > now())""",
    row=FlagTarget,
)

SET_TARGET: Final = Query(
    name="flags.set_target",
    sql="""insert into iam.flag_targets (tenant_id, flag_id, source, value, locked, expires_at)
           values (%(tenant_id)s, %(flag_id)s, %(source)s, %(value)s, %(locked)s,
             to_timestamp(%(expires_at)s::bigint / 1000.0))
           on conflict (tenant_id, flag_id, source) do update
             set value = excluded.value, locked = excluded.locked, expires_at = excluded.expires_at""",
    row=NoneType,
)

REMOVE_TARGET: Final = Query(
    name="flags.remove_target",
    sql="""delete from iam.flag_targets
           where tenant_id = %(tenant_id)s and flag_id = %(flag_id)s and source = %(source)s""",
    row=NoneType,
)
