"""How many calls pass: the burst at once, then the rate, per caller and per tenant."""

import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.envelope import Envelope
from better_compute.kernel.limits import FEWEST_TO_SWEEP, NO_LIMIT, Buckets, Limits, Rate
from better_compute.kernel.principal import Caller
from better_compute.kernel.settings import DEFAULT_RATE_CALLER, read_settings
from better_compute.modules.system.module import MODULE
from better_compute.testing.harness import harness


class Clock:
    """A clock that stands until it is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def caller(ident: str, tenant: str = "acme") -> Caller:
    return Caller(id=ident, kind="user", tenant_id=tenant)


def test_a_burst_passes_at_once_and_the_next_call_hears_when() -> None:
    clock = Clock()
    buckets = Buckets(Rate(per_second=10, burst=3), clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.take("a") == pytest.approx(0.1)
    assert buckets.take("b") == 0.0
    clock.now += 0.1001
    assert buckets.take("a") == 0.0
    assert buckets.take("a") > 0


@given(rate=st.integers(1, 1000), burst=st.integers(1, 50), gaps=st.lists(st.floats(0, 0.5), min_size=1, max_size=200))
def test_never_more_than_the_burst_and_the_rate_pass(rate: int, burst: int, gaps: list[float]) -> None:
    clock = Clock()
    buckets = Buckets(Rate(per_second=rate, burst=burst), clock=clock)
    began, passed = clock.now, 0
    for gap in gaps:
        clock.now += gap
        passed += buckets.take("a") == 0.0
        assert passed <= burst + rate * (clock.now - began) + 0.01
    clock.now += burst / rate + 1
    assert all(buckets.take("a") == 0.0 for _ in range(burst))


def test_without_a_rate_everything_passes_and_nothing_is_kept() -> None:
    buckets = Buckets(NO_LIMIT)
    assert all(buckets.take(str(number)) == 0.0 for number in range(100))
    assert len(buckets) == 0


def test_buckets_that_are_full_again_are_dropped() -> None:
    clock = Clock()
    buckets = Buckets(Rate(per_second=10, burst=10), clock=clock)
    for number in range(FEWEST_TO_SWEEP):
        buckets.take(str(number))
    clock.now += 10
    buckets.take("one more")
    assert len(buckets) == 1


def test_callers_of_one_tenant_share_its_rate_and_those_of_another_do_not() -> None:
    limits = Limits(tenant=Rate(per_second=1, burst=2), clock=Clock())
    limits.admit(caller("a"))
    limits.admit(caller("b"))
    limits.admit(caller("d", tenant="other"))
    with pytest.raises(ComputeError, match="tenant acme") as caught:
        limits.admit(caller("c"))
    assert caught.value.code is ErrorCode.RATE_LIMITED
    assert caught.value.details == {"limit": "tenant", "retryAfterMs": 1000}


async def test_a_call_over_the_limit_is_refused_before_it_is_decided() -> None:
    async with harness(MODULE) as opened:
        envelope = Envelope(opened.app.deployment, Limits(caller=Rate(per_second=1, burst=1)))
        method = opened.app.registry.method("system.version")
        await envelope.call(method, "acme", {"tenant_id": "acme"})
        with pytest.raises(ComputeError) as caught:
            await envelope.call(method, "acme", {"tenant_id": "acme"})
    assert caught.value.code is ErrorCode.RATE_LIMITED


@pytest.mark.parametrize(
    ("text", "rate"),
    [("100", Rate(per_second=100, burst=200)), ("100:7", Rate(per_second=100, burst=7)), ("0", NO_LIMIT)],
)
def test_a_rate_is_read_with_its_burst(text: str, rate: Rate) -> None:
    settings = read_settings({"BETTER_COMPUTE_RATE_TENANT": text}, as_root=False)
    assert (settings.rate_tenant, settings.rate_caller) == (rate, DEFAULT_RATE_CALLER)


@pytest.mark.parametrize("text", ["", "x", "-1", "1:0", "1:", "1.5", "10\n", "\u0661\u0660"])
def test_a_malformed_rate_is_named(text: str) -> None:
    with pytest.raises(ComputeError, match="BETTER_COMPUTE_RATE_CALLER") as caught:
        read_settings({"BETTER_COMPUTE_RATE_CALLER": text}, as_root=False)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_the_check_costs_next_to_nothing() -> None:
    """Aim 2 microseconds; bounded far above, so that a busy machine does not fail it."""
    limits = Limits(caller=Rate(per_second=10**7, burst=10**7), tenant=Rate(per_second=10**7, burst=10**7))
    one = caller("a")
    assert min(timeit.repeat(lambda: limits.admit(one), number=10_000, repeat=3)) / 10_000 < 50e-6
