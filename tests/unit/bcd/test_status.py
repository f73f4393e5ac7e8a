"""What is said about each guest, and above all what is not said too early."""

from better_compute.bcd.guests import Create, Delete, Guest, Start, Step, Stop
from better_compute.bcd.plan import Attempt
from better_compute.bcd.status import report_instances, with_usage
from better_compute.wire.v1.desired import Desired, DesiredInstance, Image, InstanceSpec
from better_compute.wire.v1.report import GuestUsage, ReportedInstance

SPEC = InstanceSpec(vcpu=1, memory_gib=1, disk_gib=1, image=Image(id="img"))
ID = "inst_a"


def entry(**changes: object) -> DesiredInstance:
    return DesiredInstance(id=ID, generation=5, spec=SPEC).model_copy(update=changes)


def said(
    desired: DesiredInstance | None,
    guest: Guest | None,
    *,
    step: Step | None = None,
    attempt: Attempt | None = None,
    lost: int | None = None,
) -> ReportedInstance:
    state = Desired(node_id="node_1", generation=9, instances=(desired,)) if desired is not None else None
    found = report_instances(
        state,
        {ID: guest} if guest is not None else {},
        busy={ID: step} if step is not None else {},
        attempts={ID: attempt} if attempt is not None else {},
        lost={ID: lost} if lost is not None else {},
    )
    assert found is not None
    return found[0]


def test_a_reached_entry_is_said_with_its_generation() -> None:
    report = said(entry(), Guest(ID, "running", generation=3))
    assert (report.state, report.generation) == ("running", 5)
    assert said(entry(power="stopped"), Guest(ID, "stopped")).state == "stopped"


def test_a_deletion_is_confirmed_when_no_guest_is_there() -> None:
    assert said(entry(deleted=True), None).state == "deleted"
    assert said(entry(deleted=True), Guest(ID, "partial")).state == "deleting"


def test_a_deletion_is_not_confirmed_while_a_step_is_unobserved() -> None:
    assert said(entry(deleted=True), None, step=Create(ID, 4, SPEC)).state == "starting"
    assert said(entry(deleted=True), None, step=Delete(ID, 5)).state == "deleting"


def test_a_running_guest_is_not_called_running_while_an_old_stop_is_in_flight() -> None:
    assert said(entry(), Guest(ID, "running"), step=Stop(ID, 4)).state == "stopping"


def test_what_has_not_begun_is_pending() -> None:
    assert said(entry(), None).state == "pending"
    assert said(entry(), None, step=Create(ID, 5, SPEC)).state == "starting"
    assert said(entry(), Guest(ID, "stopped")).state == "starting"
    assert said(entry(power="stopped"), Guest(ID, "running")).state == "stopping"


def test_a_failure_is_an_error_with_its_message_until_it_is_over() -> None:
    attempt = Attempt(5, 1, 100.0, "create failed: no space left" + "!" * 2000)
    report = said(entry(), None, attempt=attempt)
    assert report.state == "error"
    assert report.message is not None
    assert report.message.startswith("create failed: no space left")
    assert len(report.message) == 1024
    assert said(entry(), None, attempt=attempt, step=Create(ID, 5, SPEC)).state == "error"
    assert said(entry(), Guest(ID, "running"), attempt=attempt).state == "running"


def test_a_failure_of_an_older_generation_is_history() -> None:
    report = said(entry(), Guest(ID, "stopped"), attempt=Attempt(4, 1, 100.0, "no"))
    assert (report.state, report.message) == ("starting", None)


def test_a_guest_that_is_ahead_of_its_entry_is_said_at_its_own_generation() -> None:
    report = said(entry(deleted=True), Guest(ID, "running", generation=6))
    assert (report.state, report.generation) == ("running", 6)


def test_a_guest_that_nobody_listed_is_reported_too() -> None:
    report = said(None, Guest(ID, "running", generation=3))
    assert (report.id, report.state, report.generation) == (ID, "running", 3)
    assert said(None, Guest(ID, "partial")).state == "stopped"


def test_conditions_hold_for_their_generation() -> None:
    assert [condition.type for condition in said(entry(), Guest(ID, "running"), lost=5).conditions] == ["GuestLost"]
    assert said(entry(), Guest(ID, "running"), lost=4).conditions == ()
    misshapen = said(entry(), Guest(ID, "running", shape="other"), step=Start(ID, 5, 0))
    assert [condition.type for condition in misshapen.conditions] == ["ShapePending"]


def test_unknown_guests_are_not_an_empty_list() -> None:
    assert report_instances(None, None, busy={}, attempts={}, lost={}) is None
    assert with_usage(None, {}) is None


def test_usage_is_added_where_it_is_known() -> None:
    usage = GuestUsage(cpu_time_ms=5, memory_bytes=7)
    both = report_instances(
        None,
        {ID: Guest(ID, "running"), "inst_b": Guest("inst_b", "stopped")},
        busy={},
        attempts={},
        lost={},
    )
    used = with_usage(both, {ID: usage})
    assert used is not None
    assert [item.usage for item in used] == [usage, None]
