"""Plans of a part of a document: what is not selected is left alone, and said to be where something needs it."""

from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.modules.fleet.rules.selection import Selection
from better_compute.testing.harness import refused


@pytest.mark.parametrize(
    ("only", "exclude", "takes"),
    [
        ([], [], ["pool/a", "pool/b", "flavor/a/g1"]),
        (["pool"], [], ["pool/a", "pool/b"]),
        (["pool/a"], [], ["pool/a"]),
        (["pool/*"], ["pool/b"], ["pool/a"]),
        (["flavor/a/*"], [], ["flavor/a/g1"]),
        ([], ["flavor"], ["pool/a", "pool/b"]),
        (["pool/[ab]"], [], ["pool/a", "pool/b"]),
        (["pool/A"], [], []),
        (["pool/a*"], ["pool"], []),
    ],
)
def test_a_selector_is_a_kind_and_a_name(only: list[str], exclude: list[str], takes: list[str]) -> None:
    selection = Selection(only, exclude)
    items = [("pool", "a"), ("pool", "b"), ("flavor", "a/g1")]
    assert [f"{kind}/{name}" for kind, name in items if selection.takes_name((kind, name))] == takes


async def test_only_looks_at_what_it_names_and_at_what_stands_inside(operator: Any) -> None:
    await operator.apply(operator.document())
    changed = operator.document()
    changed["pools"][0]["policy"] = {"disruptionBudget": 0.3}
    changed["pools"][0]["offers"][0]["priority"] = 9
    changed["pools"][1]["policy"] = {"disruptionBudget": 0.4}
    changed["flavors"][0]["vcpu"] = 4
    planned = await operator.plan(changed, only=["pool/vps-fra"])
    assert operator.does(planned) == ["update pool vps-fra", "update offer vps-fra -> acme"]
    assert planned.summary.unchanged == 1, "its owner quota"
    assert operator.does(await operator.plan(changed, exclude=["pool/vps-fra", "flavor"])) == ["update pool burst"]
    assert operator.does(await operator.plan(changed, only=["pool"], exclude=["offer/* -> acme"])) == [
        "update pool burst",
        "update pool vps-fra",
    ]


async def test_what_is_not_selected_is_not_pruned(operator: Any) -> None:
    await operator.apply(operator.document())
    emptied = operator.document(flavors=[], pools=[])
    planned = await operator.plan(emptied, prune=True, allow_empty=True, only=["flavor"])
    assert operator.does(planned) == ["delete flavor vps-fra/g1.small"]
    planned = await operator.plan(emptied, prune=True, allow_empty=True, exclude=["pool/burst"])
    assert operator.does(planned) == ["delete pool vps-fra", "delete flavor vps-fra/g1.small"]


async def test_what_needs_something_that_is_left_out_is_blocked(operator: Any) -> None:
    planned = await operator.plan(operator.document(), only=["pool"])
    assert {change.blocked for change in planned.changes if change.kind == "pool"} == {
        "the site fra is left out of this plan; select it as well"
    }


async def test_a_selector_that_names_nothing_is_refused_at_its_path(operator: Any) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="only[1]") as caught:
        await operator.plan(operator.document(), only=["pool", "pool/vps-fr"])
    assert caught[0].message == "only[1]: pool/vps-fr names nothing here"
    with refused(ErrorCode.INVALID_INPUT, path="exclude[0]"):
        await operator.apply(operator.document(), exclude=["pol/vps-fra"])
    with refused(ErrorCode.INVALID_INPUT, path="only[0]"):
        await operator.plan(operator.document(), only=["pool/\n"])


async def test_the_selection_is_recorded_and_drift_is_looked_for_in_it_alone(operator: Any) -> None:
    await operator.apply(operator.document())
    await operator.apply(operator.document(), only=["pool"], exclude=["pool/burst"])
    status = await operator.status()
    assert (status.applied.only, status.applied.exclude) == (["pool"], ["pool/burst"])
    policy = {"disruptionBudget": 0.9}
    await operator.h.call("pools.update", tenant_id="root", pool_id=await operator.pool("burst"), policy=policy)
    await operator.check()
    assert (await operator.status()).drift is None
    await operator.h.call("pools.update", tenant_id="root", pool_id=await operator.pool(), policy=policy)
    await operator.check()
    assert [change.name for change in (await operator.status()).drift.changes] == ["vps-fra"]


async def test_a_part_that_was_applied_is_what_the_whole_no_longer_has_to_do(operator: Any) -> None:
    whole = await operator.plan(operator.document())
    await operator.apply(operator.document(), only=["site", "pool/burst"])
    rest = await operator.plan(operator.document())
    assert len(rest.calls) == len(whole.calls) - 2
    await operator.apply(operator.document())
    assert (await operator.plan(operator.document(), prune=True)).calls == []
