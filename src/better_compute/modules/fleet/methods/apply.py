"""Applying a document: all of it or nothing.

`fleet.apply` plans, has every call decided with no transaction open, plans again inside its one transaction, and
carries the plan out only if the calls are still the same (seed 000, Apply). Whatever goes wrong on the way leaves the
fleet as it was.
"""

from collections.abc import Mapping
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
from better_compute.modules.fleet.methods.progress import Progress
from better_compute.modules.fleet.methods.question import ADMIN, Question, ask, plan_alone
from better_compute.modules.fleet.rules.document import recorded_document
from better_compute.modules.fleet.rules.names import NameRow
from better_compute.modules.fleet.rules.plan import Plan, Step
from better_compute.modules.fleet.rules.values import written
from better_compute.modules.fleet.schema import MAX_DOCUMENT, FleetApplied, FleetApplyInput
from better_compute.modules.fleet.store.applied import insert_names, lock_applied, update_applied
from better_compute.modules.fleet.store.snapshot import items_of

ATTEMPTS: Final = 5
"""How often an apply is tried when rows it writes are changed meanwhile and the plan stays the same."""


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
    question = await ask(call, input)
    plan = await plan_alone(call, question, first=True)
    if input.plan_hash is not None and input.plan_hash != plan.plan_hash:
        raise _moved("since it was reviewed")
    _refuse_blocked(plan)
    for _attempt in range(ATTEMPTS):
        try:
            return await _carry_out(call, input, question, plan)
        except (BasisMoved, SerializationLost):
            if (await plan_alone(call, question)).plan_hash != plan.plan_hash:
                raise _moved("while it was applied") from None
    raise ComputeError(
        ErrorCode.UNAVAILABLE, "Other calls kept changing the same rows while the plan was applied; try again."
    )


async def _carry_out(call: Call, input: FleetApplyInput, question: Question, plan: Plan) -> FleetApplied:
    composite = call.composite
    if composite is None:
        raise ComputeError(
            ErrorCode.UNSUPPORTED, "This host cannot run calls inside a call; apply through the standard server."
        )
    composite.begin()
    async with Progress(call.deployment, tenant_id=input.tenant_id, total=2 * len(plan.steps)) as progress:
        ready = await _check_calls(call, composite, plan, progress)
        async with composite.transaction() as tx:
            await lock_applied(tx, tenant_id=input.tenant_id)
            again = await question.plan(tx)
            if again.plan_hash != plan.plan_hash or again.blocked:
                raise _moved("while it was applied")
            await composite.claim(tx, ready.checked)
            for step, item in zip(plan.steps, ready.checked, strict=True):
                await _invoke(composite, tx, step, item)
                progress.step()
            await _record(call, tx, input, question, plan, ready)
    return FleetApplied(plan=plan.view(), applied=len(ready.checked))


@dataclass(frozen=True, slots=True)
class Ready:
    """The calls of a plan, decided, and the names that their objects will have."""

    checked: list[Checked]
    names: list[NameRow]


async def _check_calls(call: Call, composite: Composite, plan: Plan, progress: Progress) -> Ready:
    """Decides every call in order, and gives new objects the ids they will have for this caller."""
    registry = call.provided(Registry)
    ids: dict[str, str] = {}
    ready = Ready(checked=[], names=[])
    for step in plan.steps:
        assert step.call is not None
        target = registry.method(step.call.method)
        try:
            given = parse_input(target.input, written(_bound(step.call.input, ids)))
            item = await composite.check(target, given)
        except ComputeError as error:
            raise _about(step, error) from error
        ready.checked.append(item)
        if step.made is not None:
            made, object_id = step.made, item.call.object_id
            ids[str(NewRef(made.kind, made.name))] = object_id
            ready.names.append(NameRow(kind=made.kind, name=made.name, object_id=object_id, lives=made.life))
        progress.step()
    return ready


async def _record(call: Call, tx: Tx, input: FleetApplyInput, question: Question, plan: Plan, ready: Ready) -> None:
    await insert_names(tx, tenant_id=input.tenant_id, rows=ready.names)
    await update_applied(
        tx,
        tenant_id=input.tenant_id,
        document=recorded_document(items_of(question.kinds), input.config),
        options=question.options.kept(),
        plan_hash=plan.plan_hash,
        applied_by=call.caller.id,
    )
    call.note(planHash=plan.plan_hash, applied=len(ready.checked))


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
