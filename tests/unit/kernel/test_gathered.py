"""What many calls leave, written by one statement, is what each would have written by itself."""

from hypothesis import given
from hypothesis import strategies as st

from better_compute.kernel.effects import AuditRow, Effects
from better_compute.kernel.gathered import Gathered
from better_compute.kernel.resources import Resource

KEYS = st.tuples(st.sampled_from(["acme", "root"]), st.just("compute-pool"), st.sampled_from(["p1", "p2", "p3"]))
STEPS = st.lists(st.tuples(KEYS, st.booleans(), st.integers(0, 9)), max_size=4)


def effects_of(steps: list[tuple[tuple[str, str, str], bool, int]], number: int) -> Effects:
    effects = Effects()
    for (tenant, kind, ident), puts, size in steps:
        if puts:
            effects.project(
                Resource(type=kind, id=ident, tenant_id=tenant, owner_tenant_id="root", attributes={"size": size})
            )
        else:
            effects.unproject(tenant_id=tenant, resource_type=kind, resource_id=ident)
    effects.wake("one", f"key-{number}")
    effects.add_audit(
        AuditRow(
            id=f"aud_{number}",
            tenant_id="root",
            actor_id="a",
            action="x",
            resource="r/1",
            outcome="allow",
            method="m",
            request_id="q",
        )
    )
    return effects


def write(views: dict[tuple[str, ...], str], effects: Effects) -> None:
    """As the SQL function does it: rows out first, then rows in."""
    for index in range(0, len(effects.unprojected), 3):
        views.pop(tuple(effects.unprojected[index : index + 3]), None)
    for index in range(0, len(effects.projected), 8):
        row = effects.projected[index : index + 8]
        views[tuple(row[:3])] = row[7]


@given(st.lists(STEPS, max_size=6))
def test_views_end_as_if_every_call_had_written_by_itself(
    calls: list[list[tuple[tuple[str, str, str], bool, int]]],
) -> None:
    one_by_one: dict[tuple[str, ...], str] = {}
    gathered = Gathered()
    for number, steps in enumerate(calls):
        write(one_by_one, effects_of(steps, number))
        gathered.add(effects_of(steps, number))
    touched = {(key[1], key[2]) for steps in calls for key, _, _ in steps}
    assert all(
        gathered.touches("compute-pool", ident) == (("compute-pool", ident) in touched) for ident in ("p1", "p2")
    )
    assert gathered.calls == len(calls)
    together: dict[tuple[str, ...], str] = {}
    taken = gathered.take()
    write(together, taken)
    assert together == one_by_one
    assert taken.audit[0::11] == [f"aud_{number}" for number in range(len(calls))]
    assert taken.work[1::2] == [f"key-{number}" for number in range(len(calls))]
