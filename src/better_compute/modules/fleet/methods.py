"""Export, plan, apply and status of a fleet.

Planning is the same function everywhere: a document beside a snapshot. `fleet.apply` plans, has every call decided with
no transaction open, plans again inside its one transaction, and carries the plan out only if the calls are still the
same (seed 000, Apply). Whatever goes wrong on the way leaves the fleet as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.items import NewRef, Opaque
from better_compute.base.models import parse_input
from better_compute.db.errors import SerializationLost
from better_compute.db.tx import Tx
from better_compute.kernel.call import Call
from better_compute.kernel.composite import Checked, Composite
from better_compute.kernel.method import method
from better_compute.kernel.registry import Registry
from better_compute.kernel.runs import BasisMoved
from better_compute.kernel.targets import fleet_wide
from better_compute.modules.fleet.rules.document import Document, read_document, recorded_document
from better_compute.modules.fleet.rules.drift import read_drift
from better_compute.modules.fleet.rules.export import write_document
from better_compute.modules.fleet.rules.fleet import EMPTY, Fleet
from better_compute.modules.fleet.rules.names import NameRow
from better_compute.modules.fleet.rules.plan import Options, Plan, Step, make_plan
from better_compute.modules.fleet.rules.values import written
from better_compute.modules.fleet.schema import (
    MAX_DOCUMENT,
    FleetApplied,
    FleetApplyInput,
    FleetBaseline,
    FleetExported,
    FleetPlan,
    FleetPlanInput,
    FleetRef,
    FleetStatus,
)
from better_compute.modules.fleet.store.applied import find_applied, insert_names, lock_applied, update_applied
from better_compute.modules.fleet.store.snapshot import AnyKind, ask_outside, items_of, kinds_of, read_snapshot

ADMIN: Final = "compute:fleet:admin"

ATTEMPTS: Final = 5
"""How often an apply is tried when rows it writes are changed meanwhile and the plan stays the same."""


@method("fleet.export", action=ADMIN, target=fleet_wide(), transaction="snapshot")
async def export_fleet(call: Call, input: FleetRef) -> FleetExported:
    """Writes the tenant's fleet as a FleetConfig document.

    Objects that fleet did not create appear under their ids; keep those names. Lists that this deployment has no module
    for are left out and named in `missing`.
    """
    kinds = kinds_of(call.deployment)
    snapshot = await read_snapshot(call.tx, kinds, tenant_id=input.tenant_id)
    return write_document(Fleet(items_of(kinds), EMPTY, snapshot))


@method("fleet.plan", action=ADMIN, target=fleet_wide(), transaction="snapshot", max_body=MAX_DOCUMENT)
async def plan_fleet(call: Call, input: FleetPlanInput) -> FleetPlan:
    """Compares a document with the tenant's fleet and says what applying it would do. Changes nothing."""
    question = await _ask(call, input)
    return (await question.plan(call.tx)).view()


@method(
    "fleet.apply",
    action=ADMIN,
    target=fleet_wide(),
    transaction="manual",
    errors=(
        ErrorCode.CONFIG_DRIFT,
        ErrorCode.INVALID_STATE,
        ErrorCode.QUOTA_EXCEEDED,
        ErrorCode.CAPACITY_UNAVAILABLE,
        ErrorCode.UNSUPPORTED,
    ),
    max_body=MAX_DOCUMENT,
)
async def apply_fleet(call: Call, input: FleetApplyInput) -> FleetApplied:
    """Makes the tenant's fleet as the document says, all of it or nothing.

    The caller needs the permission of every call that the plan makes; one refusal refuses the whole. With `planHash`
    exactly the reviewed plan is applied, or CONFIG_DRIFT. A blocked plan is INVALID_STATE with `details.blocked`. The
    document is recorded even when there is nothing to do; drift is looked for against it from then on.
    """
    question = await _ask(call, input)
    plan = await _plan_alone(call, question)
    if input.plan_hash is not None and input.plan_hash != plan.plan_hash:
        raise _moved("since it was reviewed")
    _refuse_blocked(plan)
    for _attempt in range(ATTEMPTS):
        try:
            return await _carry_out(call, input, question, plan)
        except (BasisMoved, SerializationLost):
            if (await _plan_alone(call, question)).plan_hash != plan.plan_hash:
                raise _moved("while it was applied") from None
    raise ComputeError(
        ErrorCode.UNAVAILABLE, "Other calls kept changing the same rows while the plan was applied; try again."
    )


@method("fleet.status", action=ADMIN, target=fleet_wide(), transaction="read")
async def get_fleet_status(call: Call, input: FleetRef) -> FleetStatus:
    """Says which document was applied last, by whom, and how the fleet has drifted from it since."""
    row = await find_applied(call.tx, tenant_id=input.tenant_id)
    if row is None:
        return FleetStatus(tenant_id=input.tenant_id)
    baseline = FleetBaseline(
        plan_hash=row.plan_hash,
        applied_by=row.applied_by,
        applied_at=row.applied_at,
        prune=bool(row.options.get("prune")),
        checked_at=row.checked_at,
    )
    return FleetStatus(tenant_id=input.tenant_id, applied=baseline, drift=read_drift(row.drift))


@dataclass(frozen=True, slots=True)
class Question:
    """A checked document with all that a plan needs beside the snapshot."""

    tenant_id: str
    kinds: Sequence[AnyKind]
    document: Document
    outside: Mapping[str, Any]
    options: Options

    async def plan(self, tx: Tx) -> Plan:
        """The plan against the fleet as `tx` sees it."""
        snapshot = await read_snapshot(tx, self.kinds, tenant_id=self.tenant_id, outside=self.outside)
        return make_plan(Fleet(items_of(self.kinds), self.document, snapshot), self.options)


async def _ask(call: Call, input: FleetPlanInput) -> Question:
    kinds = kinds_of(call.deployment)
    document = read_document(items_of(kinds), input.config)
    return Question(
        tenant_id=input.tenant_id,
        kinds=kinds,
        document=document,
        outside=await ask_outside(call.deployment, kinds, document),
        options=Options(prune=input.prune, allow_empty=input.allow_empty),
    )


async def _plan_alone(call: Call, question: Question) -> Plan:
    async with call.deployment.database.transaction(read_only=True, isolation="repeatable read") as tx:
        return await question.plan(tx)


async def _carry_out(call: Call, input: FleetApplyInput, question: Question, plan: Plan) -> FleetApplied:
    composite = call.composite
    if composite is None:
        raise ComputeError(
            ErrorCode.UNSUPPORTED, "This host cannot run calls inside a call; apply through the standard server."
        )
    composite.begin()
    checked, names = await _check_calls(call, composite, plan)
    async with composite.transaction() as tx:
        await lock_applied(tx, tenant_id=input.tenant_id)
        again = await question.plan(tx)
        if again.plan_hash != plan.plan_hash or again.blocked:
            raise _moved("while it was applied")
        for step, item in zip(plan.steps, checked, strict=True):
            await _invoke(composite, tx, step, item)
        await insert_names(tx, tenant_id=input.tenant_id, rows=names)
        await update_applied(
            tx,
            tenant_id=input.tenant_id,
            document=recorded_document(items_of(question.kinds), input.config),
            options={"prune": input.prune, "allowEmpty": input.allow_empty},
            plan_hash=plan.plan_hash,
            applied_by=call.caller.id,
        )
        call.note(planHash=plan.plan_hash, applied=len(checked))
    return FleetApplied(plan=plan.view(), applied=len(checked))


async def _check_calls(call: Call, composite: Composite, plan: Plan) -> tuple[list[Checked], list[NameRow]]:
    """Decides every call in order, and gives new objects the ids they will have for this caller."""
    registry = call.provided(Registry)
    ids: dict[str, str] = {}
    checked: list[Checked] = []
    names: list[NameRow] = []
    for step in plan.steps:
        assert step.call is not None
        target = registry.method(step.call.method)
        try:
            given = parse_input(target.input, written(_bound(step.call.input, ids)))
            item = await composite.check(target, given)
        except ComputeError as error:
            raise _about(step, error) from error
        checked.append(item)
        if step.made is not None:
            made = step.made
            ids[str(NewRef(made.kind, made.name))] = item.call.object_id
            names.append(NameRow(kind=made.kind, name=made.name, object_id=item.call.object_id, lives=made.life))
    return checked, names


async def _invoke(composite: Composite, tx: Tx, step: Step, item: Checked) -> None:
    try:
        await composite.invoke(tx, item)
    except ComputeError as error:
        raise _about(step, error) from error


def _bound(value: Any, ids: Mapping[str, str]) -> Any:
    """The input with the ids of objects that earlier calls create, and with opaque texts in clear."""
    if isinstance(value, NewRef):
        return ids[str(value)]
    if isinstance(value, Opaque):
        assert value.text is not None, "a plan with a text that nobody knows is blocked"
        return value.text
    if isinstance(value, Mapping):
        return {name: _bound(item, ids) for name, item in value.items()}
    return value


def _about(step: Step, error: ComputeError) -> ComputeError:
    """The refusal of one call, with the item it was about."""
    change = step.change
    return ComputeError(error.code, f"{change.kind} {change.name}: {error.message}", **error.details)


def _moved(when: str) -> ComputeError:
    return ComputeError(
        ErrorCode.CONFIG_DRIFT, f"The fleet changed {when}, and the plan with it; plan again, review, apply that plan."
    )


def _refuse_blocked(plan: Plan) -> None:
    if not plan.blocked:
        return
    first = plan.blocked[0]
    more = f" (and {len(plan.blocked) - 1} more)" if len(plan.blocked) > 1 else ""
    raise ComputeError(
        ErrorCode.INVALID_STATE,
        f"The plan is blocked: {first.kind} {first.name}: {first.blocked}{more}.",
        blocked=[
            {"kind": change.kind, "name": change.name, "action": change.action, "blocked": change.blocked}
            for change in plan.blocked
        ],
    )
