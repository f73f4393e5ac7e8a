"""A document with all that a plan needs beside the snapshot; what planning and applying have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.tx import Tx
from better_compute.kernel.call import Call
from better_compute.modules.fleet.rules.document import Document, read_document
from better_compute.modules.fleet.rules.fleet import Fleet
from better_compute.modules.fleet.rules.plan import Options, Plan, make_plan
from better_compute.modules.fleet.schema import FRAME, FleetPlanInput
from better_compute.modules.fleet.store.snapshot import AnyKind, ask_outside, items_of, kinds_of, read_snapshot

ADMIN: Final = "compute:fleet:admin"
"""What every fleet method decides, on `compute-fleet/global` (seed 000)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A checked document, how it is meant, and what was asked of others than our database."""

    tenant_id: str
    kinds: Sequence[AnyKind]
    document: Document
    outside: Mapping[str, Any]
    options: Options

    async def plan(self, tx: Tx) -> Plan:
        """The plan against the fleet as `tx` sees it."""
        return make_plan(await self._fleet(tx), self.options)

    async def first_plan(self, tx: Tx) -> Plan:
        """The same for somebody who just asked: INVALID_INPUT when a selector names nothing at all."""
        fleet = await self._fleet(tx)
        for name, selectors in (("only", self.options.selection.only), ("exclude", self.options.selection.exclude)):
            unmatched = fleet.unmatched(selectors)
            if unmatched:
                problems = [
                    {"path": f"{name}[{index}]", "message": f"{selectors[index].text} names nothing here"}
                    for index in unmatched
                ]
                raise _refused(problems)
        return make_plan(fleet, self.options)

    async def _fleet(self, tx: Tx) -> Fleet:
        snapshot = await read_snapshot(tx, self.kinds, tenant_id=self.tenant_id, outside=self.outside)
        return Fleet(items_of(self.kinds), self.document, snapshot, self.options.selection)


async def ask(call: Call, input: FleetPlanInput) -> Question:
    """Checks what was asked; INVALID_INPUT lists every problem of the document."""
    kinds = kinds_of(call.deployment)
    document = read_document(items_of(kinds), input.config)
    options = Options(
        prune=input.prune, allow_empty=input.allow_empty, only=tuple(input.only), exclude=tuple(input.exclude)
    )
    known = sorted({*(kind.name for kind in kinds), *(frame.kind for frame in FRAME)})
    problems = [
        {"path": f"{name}[{index}]", "message": f"there is no kind {one.kind}; the kinds are {', '.join(known)}"}
        for name, selectors in (("only", options.selection.only), ("exclude", options.selection.exclude))
        for index, one in enumerate(selectors)
        if one.kind not in known
    ]
    if problems:
        raise _refused(problems)
    return Question(
        tenant_id=input.tenant_id,
        kinds=kinds,
        document=document,
        outside=await ask_outside(call.deployment, kinds, document),
        options=options,
    )


async def plan_alone(call: Call, question: Question, *, first: bool = False) -> Plan:
    """The plan in a snapshot of its own."""
    async with call.deployment.database.transaction(read_only=True, isolation="repeatable read") as tx:
        return await (question.first_plan(tx) if first else question.plan(tx))


def _refused(problems: list[dict[str, str]]) -> ComputeError:
    first = problems[0]
    return ComputeError(
        ErrorCode.INVALID_INPUT, f"{first['path']}: {first['message']}", path=first["path"], problems=problems
    )
