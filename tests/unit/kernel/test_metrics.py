"""What is counted, and how it reads."""

import timeit

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.metrics import PROCESS, Counters, Gauge


def test_calls_are_counted_by_method_and_code() -> None:
    counters = Counters()
    counters.call("sites.get", None, 0.002)
    counters.call("sites.get", None, 0.002)
    counters.call("sites.get", ComputeError(ErrorCode.NOT_FOUND, "no"), 0.001)
    text = counters.exposition()
    assert 'better_compute_calls_total{method="sites.get",code="ok",process="server"} 2' in text
    assert 'better_compute_calls_total{method="sites.get",code="NOT_FOUND",process="server"} 1' in text


def test_latencies_fall_into_buckets_that_add_up() -> None:
    counters = Counters()
    for seconds in (0.001, 0.0011, 0.3, 99.0):
        counters.call("sites.get", None, seconds)
    lines = [line for line in counters.exposition().splitlines() if "call_seconds" in line and "sites.get" in line]
    found = {line.split('le="')[1].split('"')[0]: int(line.split()[-1]) for line in lines if "_bucket" in line}
    assert (found["0.001"], found["0.0025"], found["0.25"], found["0.5"], found["30.0"]) == (1, 2, 2, 3, 3)
    assert found["+Inf"] == 4
    assert lines[-1].endswith(" 4")
    assert lines[-2].endswith(" 99.302100")


def test_refused_placements_are_counted_by_what_was_lacking() -> None:
    counters = Counters()
    counters.call("instances.create", ComputeError(ErrorCode.CAPACITY_UNAVAILABLE, "no", resource="gpu"), 0.1)
    counters.call("instances.create", ComputeError(ErrorCode.QUOTA_EXCEEDED, "no", resource="vcpu"), 0.1)
    counters.call("instances.create", ComputeError(ErrorCode.CONFLICT, "no", resource="vcpu"), 0.1)
    text = counters.exposition()
    assert 'placement_refusals_total{code="CAPACITY_UNAVAILABLE",reason="gpu",process="server"} 1' in text
    assert 'placement_refusals_total{code="QUOTA_EXCEEDED",reason="vcpu",process="server"} 1' in text
    assert "CONFLICT" not in "".join(line for line in text.splitlines() if "refusals" in line)


def test_reasons_without_end_do_not_make_series_without_end() -> None:
    counters = Counters()
    for number in range(500):
        counters.call("x.y", ComputeError(ErrorCode.QUOTA_EXCEEDED, "no", resource=f"r{number}"), 0.1)
    assert len(counters.refusals) == 101
    assert counters.refusals["QUOTA_EXCEEDED", "other"] == 400


def test_every_line_carries_the_process_and_every_name_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROCESS, 'a "b"\\')
    counters = Counters()
    counters.call("a.b", None, 0.1)
    counters.retry("a.b")
    counters.step("fleet.drift", "failed")
    text = counters.exposition([Gauge("pool_connections", 2, {"state": "used"}), Gauge("pool_waiting", 0)])
    typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    for line in text.splitlines():
        if not line.startswith("#"):
            assert 'process="a \\"b\\"\\\\"' in line
            name = line.partition("{")[0]
            assert name in typed or name.rsplit("_", 1)[0] in typed
    assert 'better_compute_pool_connections{state="used",process=' in text
    assert text.endswith("\n")


def test_counting_a_call_costs_next_to_nothing() -> None:
    """Bounded at fifty times what it takes, so that a busy machine does not fail it; a lock or a scan would."""
    counters = Counters()
    rounds = 10_000
    best = min(timeit.repeat(lambda: counters.call("a.b", None, 0.003), number=rounds, repeat=3)) / rounds
    assert best < 50e-6
