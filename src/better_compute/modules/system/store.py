"""Statements on the work queue, for those who look after it."""

from dataclasses import dataclass
from typing import Final

from better_compute.db.query import Query

_QUEUE: Final = "the queue belongs to no tenant"


@dataclass(frozen=True, slots=True)
class Overdue:
    """Keys of one background step that are due and that nobody works on."""

    reconciler: str
    keys: int
    age_seconds: int
    """How long the oldest has been due."""


LIST_OVERDUE: Final = Query(
    name="system.list_overdue",
    sql="""select reconciler, count(*) as keys, extract(epoch from now() - min(due_at))::bigint as age_seconds
           from work
           where due_at < now() - make_interval(secs => %(seconds)s)
             and (leased_until is null or leased_until < now())
             and reconciler = any(%(reconcilers)s::text[])
           group by reconciler order by reconciler""",
    row=Overdue,
    crosses_tenants=_QUEUE,
)


@dataclass(frozen=True, slots=True)
class Failing:
    """A key that fails again and again."""

    reconciler: str
    key: str
    attempts: int
    last_error: str


LIST_FAILING: Final = Query(
    name="system.list_failing",
    sql="""select reconciler, key, attempts, coalesce(last_error, '') as last_error from work
           where attempts >= %(attempts)s and reconciler = any(%(reconcilers)s::text[])
           order by attempts desc, reconciler, key limit 100""",
    row=Failing,
    crosses_tenants=_QUEUE,
)
