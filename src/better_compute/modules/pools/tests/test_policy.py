"""A policy's canonical form: what means the same is the same, and what is answered is what was meant."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.models import parse_input
from better_compute.modules.pools.rules import canonical_policy, policy_view
from better_compute.modules.pools.schema import PoolPolicy

RESOURCE = st.sampled_from(["vcpu", "memoryGiB", "diskGiB"])
RATIO = st.decimals(min_value="0.1", max_value=100, places=3)
SHARE = st.decimals(min_value="0", max_value=1, places=2)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "placement": st.sampled_from(["spread", "pack"]),
        "overcommit": st.dictionaries(RESOURCE, RATIO.map(str), max_size=3),
        "hostReserve": st.dictionaries(RESOURCE, st.integers(0, 2**53), max_size=3),
        "singleTenant": st.booleans(),
        "disruptionBudget": SHARE.map(str),
        "runtime": st.just("kvm"),
    },
)
DEFAULTS: dict[str, Any] = {"placement": "spread", "overcommit": {}, "hostReserve": {}, "singleTenant": False}


def canonical(given_policy: dict[str, Any]) -> dict[str, Any]:
    return canonical_policy(parse_input(PoolPolicy, given_policy))


@given(POLICIES)
def test_a_default_written_out_is_a_default_left_out(policy: dict[str, Any]) -> None:
    """argo-cd #22546 (case 15)."""
    assert canonical({**DEFAULTS, **policy}) == canonical(policy)
    ones = {
        resource: 1 for resource in ("vcpu", "memoryGiB", "diskGiB") if resource not in policy.get("overcommit", {})
    }
    assert canonical({**policy, "overcommit": {**ones, **policy.get("overcommit", {})}}) == canonical(policy)


@given(POLICIES)
def test_order_means_nothing(policy: dict[str, Any]) -> None:
    turned = {
        name: dict(reversed(value.items())) if isinstance(value, dict) else value
        for name, value in reversed(policy.items())
    }
    assert list(canonical(turned).items()) == list(canonical(policy).items())


@given(POLICIES)
def test_what_is_answered_means_the_same_when_it_is_sent_back(policy: dict[str, Any]) -> None:
    stored = canonical(policy)
    view = policy_view(stored)
    again: dict[str, Any] = {
        "placement": view.placement,
        "overcommit": None
        if view.overcommit is None
        else {name: str(ratio) for name, ratio in view.overcommit.items()},
        "hostReserve": view.host_reserve,
        "singleTenant": view.single_tenant,
        "disruptionBudget": None if view.disruption_budget is None else str(view.disruption_budget),
        "runtime": view.runtime,
    }
    assert canonical({name: value for name, value in again.items() if value is not None}) == stored


@pytest.mark.parametrize("spelling", [1.5, "1.5", "1.50", "1.500"])
def test_a_ratio_has_one_meaning_however_it_is_spelt(spelling: Any) -> None:
    assert canonical({"overcommit": {"vcpu": spelling}}) == {"overcommit": {"vcpu": "1.5"}}


@given(RATIO)
def test_a_ratio_is_kept_to_the_last_digit(ratio: Decimal) -> None:
    stored = canonical({"overcommit": {"vcpu": str(ratio)}})
    assert Decimal(stored.get("overcommit", {"vcpu": "1"})["vcpu"]) == ratio
