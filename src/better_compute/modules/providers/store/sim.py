"""Statements of the simulated provider: its servers, and its count of calls.

They run one by one outside any transaction of ours, as a vendor's API would be called. Times are the database's, read
as the statement runs, so that a boot or a late list passes while the platform waits.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.db.query import Query

_WORLD: Final = "the simulated provider is a world of its own"


@dataclass(frozen=True, slots=True)
class SimRow:
    """A simulated server."""

    id: str
    labels: dict[str, str]
    power: str
    attempts: int
    finished: bool
    age_seconds: float
    created_at: int


_COLUMNS: Final = """s.id, s.labels, s.power, s.attempts, s.finished,
  extract(epoch from clock_timestamp() - s.created_at)::float8 as age_seconds,
  (extract(epoch from s.created_at) * 1000)::bigint as created_at"""

INSERT: Final = Query(
    name="providers.sim_insert",
    sql=f"""insert into sim_servers as s (id, account_id, key, name, labels, offer_id, image, power)
            values (%(id)s, %(account_id)s, %(key)s, %(name)s, %(labels)s, %(offer_id)s, %(image)s, 'running')
            on conflict (account_id, key) do update set key = excluded.key
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=SimRow,
    crosses_tenants=_WORLD,
)

FIND: Final = Query(
    name="providers.sim_find",
    sql=f"select {_COLUMNS} from sim_servers s where s.account_id = %(account_id)s and s.id = %(id)s",  # noqa: S608  # constants only
    row=SimRow,
    crosses_tenants=_WORLD,
)

LIST: Final = Query(
    name="providers.sim_list",
    sql=f"""select {_COLUMNS} from sim_servers s
            where s.account_id = %(account_id)s and s.labels @> %(labels)s::jsonb
              and s.created_at <= clock_timestamp() - make_interval(secs => %(late_seconds)s::float8)
            order by s.id""",  # noqa: S608  # constants only
    row=SimRow,
    crosses_tenants=_WORLD,
)

SWITCH: Final = Query(
    name="providers.sim_switch",
    sql="""update sim_servers set power = %(power)s where account_id = %(account_id)s and id = %(id)s returning true""",
    row=bool,
    crosses_tenants=_WORLD,
)

FOLLOW_UP: Final = Query(
    name="providers.sim_follow_up",
    sql=f"""update sim_servers s set attempts = s.attempts + 1, finished = s.finished or s.attempts >= %(failing)s
            where s.account_id = %(account_id)s and s.id = %(id)s returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=SimRow,
    crosses_tenants=_WORLD,
)

DELETE: Final = Query(
    name="providers.sim_delete",
    sql="delete from sim_servers where account_id = %(account_id)s and id = %(id)s",
    row=NoneType,
    crosses_tenants=_WORLD,
)

COUNT_CALL: Final = Query(
    name="providers.sim_count_call",
    sql="""insert into sim_calls as c (account_id, minute, calls)
           values (%(account_id)s, floor(extract(epoch from clock_timestamp()) / 60)::bigint, 1)
           on conflict (account_id) do update
             set calls = case when c.minute = excluded.minute then c.calls + 1 else 1 end, minute = excluded.minute
           returning calls""",
    row=int,
    crosses_tenants=_WORLD,
)
