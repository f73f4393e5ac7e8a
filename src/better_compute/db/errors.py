"""What a failed statement means: SQLSTATE and constraint name become one of a few exceptions.

Callers above this package never see a psycopg exception that they could do something about. Lost races are
`SerializationLost` (the envelope runs the call again), refusals of our own SQL functions are `DatabaseRefusal`, broken
constraints are `ConstraintViolated` unless the query declared what they mean, and whatever says "the database cannot
answer now" is `ComputeError` UNAVAILABLE. Everything else is a bug of ours and passes through as it came. The psycopg
error is always chained, so that the log has the whole story.

A connection that breaks while something was being committed is `CommitUnknown`: it may have been committed or not, and
only looking tells.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import errors as pg

from better_compute.base.errors import ComputeError, ErrorCode

NO_CAPACITY: Final = "BC001"
"""Private SQLSTATE: a guarded claim found too little left on the node."""

OVER_QUOTA: Final = "BC002"
"""Private SQLSTATE: a charge would exceed a quota."""

BASIS_MOVED: Final = "BC003"
"""Private SQLSTATE: the version that a decision rested on is no longer the current one."""

_PRIVATE: Final = "BC"
_CACHED_PLAN: Final = "cached plan must not change result type"


class SerializationLost(Exception):  # noqa: N818  # a lost race, which the envelope runs again
    """The transaction lost a race (40001, 40P01) and was rolled back; the same call may win next time."""


class DatabaseRefusal(Exception):  # noqa: N818  # an answer of our own SQL, not a failure
    """One of our SQL functions refused, with a private SQLSTATE."""

    def __init__(self, sqlstate: str, message: str, detail: Mapping[str, Any]) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate
        self.message = message
        self.detail = dict(detail)
        """The JSON object that the function put into DETAIL; empty when it gave none."""


class ConstraintViolated(Exception):  # noqa: N818  # says what happened to the constraint
    """A constraint refused a row, and the query did not declare what that means."""

    def __init__(self, constraint: str, sqlstate: str) -> None:
        super().__init__(f"{constraint} ({sqlstate})")
        self.constraint = constraint
        """The constraint's name; for NOT NULL, the column's."""
        self.sqlstate = sqlstate


class RowCountUnexpected(Exception):  # noqa: N818  # named after what is wrong
    """A statement that must answer one row answered none or several: a bug of ours."""


class RolledBack(Exception):  # noqa: N818  # says what became of the transaction
    """COMMIT answered ROLLBACK: a statement had failed and somebody swallowed its error. A bug of ours."""

    def __init__(self) -> None:
        super().__init__("the transaction was rolled back at commit, because a statement in it had failed")


class CommitUnknown(ComputeError):  # noqa: N818  # says what is not known
    """The connection broke while a commit was under way: look whether it went through before trying again.

    It is an UNAVAILABLE for everybody who does not look.
    """

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.UNAVAILABLE,
            "The database connection broke while the change was being committed; look before you try again.",
        )


def unavailable(message: str) -> ComputeError:
    """UNAVAILABLE in the words of this package; the caller may simply try again."""
    return ComputeError(ErrorCode.UNAVAILABLE, message)


def connection_lost(error: psycopg.Error) -> bool:
    """Whether the error says that the connection is gone, so that the outcome of what was running is not known."""
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or error.sqlstate.startswith("08") or error.sqlstate in _SHUTDOWN
    )


def stale_connection(error: psycopg.Error) -> bool:
    """Whether the connection still works but must not be used again: it knows outdated plans, or leads to a standby."""
    return isinstance(error, pg.ReadOnlySqlTransaction) or _is_outdated_plan(error)


def translate(error: psycopg.Error) -> Exception:
    """What a failed statement means, apart from refusals that its query declares."""
    state = error.sqlstate or ""
    if state in _LOST_RACE or _is_outdated_plan(error):
        return SerializationLost(error.diag.message_primary or str(error))
    if state.startswith(_PRIVATE):
        return DatabaseRefusal(state, error.diag.message_primary or "refused", _detail(error))
    if state.startswith("23"):
        return ConstraintViolated(error.diag.constraint_name or error.diag.column_name or "unnamed", state)
    message = _UNAVAILABLE.get(state) or _UNAVAILABLE.get(state[:2])
    if message is not None:
        return unavailable(message)
    if connection_lost(error):
        return unavailable("The connection to the database broke; try again.")
    return error


_LOST_RACE: Final = frozenset({"40001", "40P01"})

_SHUTDOWN: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03"})

_UNAVAILABLE: Final = {
    "08": "The connection to the database broke; try again.",
    "25006": "The database is a standby that takes no changes, probably during a failover; try again.",
    "25P03": "The database ended a transaction that waited too long; try again.",
    "25P04": "The database ended a transaction that took too long; try again.",
    "26000": "The database forgot a prepared statement; behind a pooler, set BETTER_COMPUTE_PREPARE=off.",
    "53": "The database is out of connections, memory or disk; try again later.",
    "55P03": "Other calls held the same rows for too long; try again.",
    "57014": "The database took too long over this and gave up; try again.",
    "57P01": "The database is shutting down or was told to end the connection; try again.",
    "57P02": "The database is recovering from a crash; try again.",
    "57P03": "The database is starting up or shutting down; try again.",
    "57P05": "The database ended an idle connection; try again.",
    "58": "The database cannot read or write its files; ask the operator to look at its log.",
}
"""What to say by SQLSTATE or, for two characters, by its class."""


def _is_outdated_plan(error: psycopg.Error) -> bool:
    """A migration changed what a prepared statement answers: the server refuses the old plan for good."""
    return isinstance(error, pg.FeatureNotSupported) and error.diag.message_primary == _CACHED_PLAN


def _detail(error: psycopg.Error) -> Mapping[str, Any]:
    try:
        parsed = json.loads(error.diag.message_detail or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
