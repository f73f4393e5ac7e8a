"""Builds the one statement of a hot method.

A hot call is one round trip: the idempotency claim, then the SQL functions of the modules involved in their fixed lock
order, then the effects. PostgreSQL runs the functions of a select list from left to right. A row type for such a
statement begins with `keyed: bool`, has one field per module function, and ends with `effects: bool`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from better_compute.db.query import Query, Refusal
from better_compute.kernel.effects import EFFECTS_CALL
from better_compute.kernel.idempotency import CLAIM_CALL

R = TypeVar("R")


def hot_query(
    name: str, select_list: str, *, row: type[R], refuses: Mapping[str, Refusal] = MappingProxyType({})
) -> Query[R]:
    """The statement around `select_list`, a comma-separated list of aliased function calls."""
    sql = f"select {CLAIM_CALL} as keyed, {select_list}, {EFFECTS_CALL} as effects"  # constants only
    return Query(
        name=name, sql=sql, row=row, refuses=refuses, crosses_tenants="every function takes the tenants it writes for"
    )
