"""Which flags are on: kill switch, nearest target or override, rollout, default."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from better_compute.identity.flags.rules import Flag, FlagTarget, flags_on

CHAIN = ("lab", "acme", "root")
TENANTS = st.sampled_from(CHAIN)


def flag(tenant_id: str = "root", **changes: Any) -> Flag:
    plain: dict[str, Any] = {
        "default_value": False,
        "rollout_percentage": None,
        "kill_switch": False,
        "tenant_overridable": True,
        "internal": False,
        "description": None,
        "created_at": 0,
    }
    return Flag(id=f"flag-of-{tenant_id}", tenant_id=tenant_id, key="compute.h100", **{**plain, **changes})


def target(tenant_id: str, *, value: bool, source: str = "target", locked: bool = False) -> FlagTarget:
    return FlagTarget(
        tenant_id=tenant_id,
        flag_id="flag-of-root",
        source="override" if source == "override" else "target",
        value=value,
        locked=locked,
        expires_at=None,
    )


def on(tenant_id: str, **changes: Any) -> FlagTarget:
    return target(tenant_id, value=True, **changes)


def off(tenant_id: str, **changes: Any) -> FlagTarget:
    return target(tenant_id, value=False, **changes)


def is_on(flags: list[Flag], *targets: FlagTarget, chain: tuple[str, ...] = CHAIN) -> bool:
    return "compute.h100" in flags_on(chain, flags, targets)


def test_an_unknown_flag_is_off() -> None:
    assert flags_on(CHAIN, [], []) == frozenset()


def test_the_default_counts_where_nothing_else_does() -> None:
    assert is_on([flag(default_value=True)])
    assert not is_on([flag()])


def test_the_nearest_target_wins() -> None:
    assert is_on([flag()], on("acme"))
    assert not is_on([flag()], on("acme"), off("lab"))
    assert is_on([flag()], on("acme"), off("lab"), chain=("acme", "root"))


def test_an_override_beats_the_target_of_its_own_tenant() -> None:
    assert is_on([flag()], off("lab"), on("lab", source="override"))


def test_a_locked_target_silences_overrides_at_and_below_it() -> None:
    locked = off("acme", locked=True)
    assert not is_on([flag()], locked, on("lab", source="override"))
    assert not is_on([flag()], locked, on("acme", source="override"))
    assert is_on([flag()], locked, on("lab"))


def test_a_target_in_the_defining_tenant_counts_for_nothing() -> None:
    assert not is_on([flag()], on("root"))


def test_the_definition_nearest_the_root_wins_a_key() -> None:
    assert is_on([flag("acme"), flag("root", default_value=True)])
    assert not is_on([flag("acme", default_value=True), flag("root")])


@given(st.lists(st.builds(target, TENANTS, value=st.booleans(), locked=st.booleans()), max_size=4))
def test_a_kill_switch_silences_everything(targets: list[FlagTarget]) -> None:
    assert not is_on([flag(default_value=True, kill_switch=True)], *targets)


@given(st.text(min_size=1, max_size=20), st.integers(0, 100))
def test_a_rollout_only_ever_grows(tenant_id: str, percentage: int) -> None:
    chain = (tenant_id, "root")
    if is_on([flag(rollout_percentage=percentage)], chain=chain):
        assert is_on([flag(rollout_percentage=min(100, percentage + 7))], chain=chain)


def test_a_rollout_reaches_about_its_share_of_branches_and_all_of_one() -> None:
    branches = [f"tenant-{number}" for number in range(1000)]
    reached = [name for name in branches if is_on([flag(rollout_percentage=30)], chain=(name, "root"))]
    assert 250 < len(reached) < 350
    assert all(is_on([flag(rollout_percentage=30)], chain=("child", name, "root")) for name in reached)
    assert not any(is_on([flag(rollout_percentage=0)], chain=(name, "root")) for name in branches)
    assert all(is_on([flag(rollout_percentage=100)], chain=(name, "root")) for name in branches)
