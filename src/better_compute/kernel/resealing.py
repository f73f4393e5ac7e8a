"""After the deployment's secret was changed, everything sealed is sealed anew under the new one.

A module names its columns of sealed texts in its manifest; one background step and one check serve them all. While
`BETTER_COMPUTE_PREVIOUS_SECRETS` names the earlier secrets, what they sealed opens. When the check finds nothing under
them any more, they can go.

Texts are taken some at a time, and only those under a key that this process has, so that one whose key is lost never
stands before the others. Nothing is opened while a transaction is open, and the new text replaces the old one only
where that still stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final

from better_compute.base.errors import ComputeError
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.kernel.observe import log
from better_compute.kernel.reconciler import Reconciler, Step

NAME: Final = "sealing.reseal"
BATCH: Final = 200
"""Texts of one column sealed anew by one run."""

INTERVAL_SECONDS: Final = 3600

_NO_TENANT: Final = "keys belong to the deployment, whoever owns what was sealed under them"


@dataclass(frozen=True, slots=True)
class SealedText:
    """One text as it is stored."""

    key: list[str]
    """What its row is known by, in the order of the column's `key`."""
    sealed: str


@dataclass(frozen=True, slots=True)
class MarkCount:
    """How many texts begin with a mark; see `Sealer.marks`."""

    mark: str
    count: int


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column of texts sealed by the deployment's `Sealer`; null where a row has none."""

    table: str
    column: str
    key: tuple[str, ...]
    """The columns of the table's primary key."""
    purpose: str
    """What a text is sealed for, with the key's columns in braces: `secret:{secret_id}:{version}`."""
    listing: Query[SealedText] = field(init=False, repr=False)
    counting: Query[MarkCount] = field(init=False, repr=False)
    replacing: Query[None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, query in _queries(self).items():
            object.__setattr__(self, name, query)

    @property
    def name(self) -> str:
        """`secret_versions.sealed`."""
        return f"{self.table}.{self.column}"

    def purpose_of(self, text: SealedText) -> str:
        """What this very text was sealed for."""
        return self.purpose.format_map(dict(zip(self.key, text.key, strict=True)))


Found = list[tuple[SealedColumn, SealedText]]
Resealed = list[tuple[SealedColumn, SealedText, str]]
"""Texts with what replaces them."""


def reseal_reconciler(columns: Sequence[SealedColumn]) -> Reconciler[Found, Found, Resealed]:
    """The step that seals these columns under the present secret."""

    async def load(step: Step, tx: Tx) -> Found | None:
        marks = list(step.deployment.sealer.marks[1:])
        if not marks:
            return None
        return [
            (column, text) for column in columns for text in await tx.many(column.listing, marks=marks, limit=BATCH)
        ]

    return Reconciler(
        name=NAME,
        described="Seals everything under the deployment's present secret that an earlier one sealed.",
        load=load,
        plan=lambda found: found or None,
        act=reseal,
        record=record,
        interval_seconds=INTERVAL_SECONDS,
        keys=("all",),
    )


def sealing_check(columns: Sequence[SealedColumn]) -> Check:
    """What tells whether earlier secrets are still needed, and whether one is missing."""

    async def find(deployment: Deployment, tx: Tx) -> list[Finding]:
        present, *earlier = deployment.sealer.marks
        return [
            _finding(column, counted.count, opens=counted.mark in earlier)
            for column in columns
            for counted in await tx.many(column.counting, length=len(present))
            if counted.mark != present
        ]

    return Check(
        name="sealing.earlier",
        described="Counts what is sealed under another secret than the deployment's present one.",
        find=find,
    )


async def reseal(step: Step, plan: Found) -> Resealed:
    """Opens and seals; a text that does not open is left alone and told in the log."""
    sealer = step.deployment.sealer
    resealed: Resealed = []
    for column, text in plan:
        purpose = column.purpose_of(text)
        try:
            plain = sealer.open(text.sealed, purpose=purpose)
        except ComputeError:
            log.error("a sealed text is damaged", column=column.name, key=text.key)
            continue
        resealed.append((column, text, sealer.seal(plain, purpose=purpose)))
    return resealed


async def record(step: Step, tx: Tx, plan: Found, done: Resealed) -> None:
    """Replaces the texts, and goes on at once when there may be more."""
    for column, text, sealed in done:
        keys: dict[str, Any] = {f"key_{number}": part for number, part in enumerate(text.key)}
        await tx.run(column.replacing, **keys, before=text.sealed, sealed=sealed)
    log.info("texts sealed anew", count=len(done))
    if len(plan) >= BATCH and done:
        step.effects.wake(NAME, step.key)


def _queries(column: SealedColumn) -> dict[str, Query[Any]]:
    keys = ", ".join(f"{one}::text" for one in column.key)
    same = " and ".join(f"{one} = %(key_{number})s" for number, one in enumerate(column.key))
    table, text = column.table, column.column
    return {
        "listing": Query(
            name=f"sealing.list_{column.name}",
            sql=f"""select array[{keys}] as key, {text} as sealed from {table}
                    where left({text}, length((%(marks)s::text[])[1])) = any(%(marks)s)
                    order by {", ".join(column.key)} limit %(limit)s""",  # noqa: S608  # constants only
            row=SealedText,
            crosses_tenants=_NO_TENANT,
        ),
        "counting": Query(
            name=f"sealing.count_{column.name}",
            sql=f"""select left({text}, %(length)s) as mark, count(*) as count from {table}
                    where {text} is not null group by 1 order by 1""",  # noqa: S608  # constants only
            row=MarkCount,
            crosses_tenants=_NO_TENANT,
        ),
        "replacing": Query(
            name=f"sealing.replace_{column.name}",
            sql=f"update {table} set {text} = %(sealed)s where {same} and {text} = %(before)s",  # noqa: S608  # constants only
            row=NoneType,
            crosses_tenants=_NO_TENANT,
        ),
    }


def _finding(column: SealedColumn, count: int, *, opens: bool) -> Finding:
    return Finding(
        code="sealing.earlier",
        severity="warning" if opens else "error",
        subject=f"column/{column.name}",
        message=f"{count} texts are sealed under "
        + ("an earlier secret, which is still needed." if opens else "a secret that this process was not given."),
        remedy=f"Run `better-compute work --once {NAME}` until nothing is found."
        if opens
        else "Name the secret they were sealed under in BETTER_COMPUTE_PREVIOUS_SECRETS.",
        counted=count,
    )
