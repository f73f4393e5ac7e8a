"""What the process counted since it started, and Prometheus' text format.

Counting is a few dictionary operations and takes no lock: all of it happens in one event loop. A method's counts are
one object, made at its first call. Latencies go into fixed buckets, so that those of several processes can be added up.
Everything carries the label `process`, for the processes behind one address answer a scrape by turns.

What is not counted but read (the queue, the pool of connections) is passed in as `Gauge`s when somebody asks. Labels
hold names of ours alone, never an id, a tenant or anything else a caller sent.
"""

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode

PROCESS: Final = "BETTER_COMPUTE_PROCESS"
"""Where a process finds its own name, given by the one that started it."""

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the latency buckets, in seconds; one more counts what took longer."""

_MOST_REASONS: Final = 100
"""How many reasons of refusals are told apart; what comes later is counted as `other`."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One value as it is now."""

    name: str
    """`pool_connections`, without the prefix that all have."""
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


class _MethodCounts:
    """One method's answers by code, and how long they took."""

    __slots__ = ("buckets", "codes", "seconds")

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Counters:
    """Counts since the process started."""

    def __init__(self) -> None:
        self.retries: Counter[str] = Counter()
        """Serialization failures and deadlocks tried again, by method."""
        self.reconciled: Counter[tuple[str, str]] = Counter()
        """Background steps by reconciler and outcome."""
        self.refusals: Counter[tuple[str, str]] = Counter()
        """Refused placements by code and by what was lacking."""
        self._methods: dict[str, _MethodCounts] = {}
        self._started = time.time()

    def call(self, method_name: str, refused: ComputeError | None, seconds: float) -> None:
        """One call that ended, in an answer or a refusal, and how long it took."""
        counts = self._methods.get(method_name)
        if counts is None:
            counts = self._methods[method_name] = _MethodCounts()
        code: str = "ok" if refused is None else refused.code
        counts.codes[code] = counts.codes.get(code, 0) + 1
        counts.buckets[bisect_left(BUCKETS, seconds)] += 1
        counts.seconds += seconds
        if refused is not None and refused.code in _PLACEMENT:
            self._refusal(refused)

    def retry(self, method_name: str) -> None:
        """One transaction that was lost to another and tried again."""
        self.retries[method_name] += 1

    def step(self, reconciler: str, outcome: str) -> None:
        """One background step that ended, `ok` or `failed`."""
        self.reconciled[reconciler, outcome] += 1

    def calls(self, method_name: str) -> Mapping[str, int]:
        """How many calls of a method ended, by code; `ok` for answers."""
        counts = self._methods.get(method_name)
        return {} if counts is None else counts.codes

    def exposition(self, gauges: Sequence[Gauge] = ()) -> str:
        """The counters and what else is known, in Prometheus' text format."""
        process = f'process="{_escaped(os.environ.get(PROCESS, "server"))}"'
        return "\n".join([*self._lines(process), *_gauge_lines(gauges, process)]) + "\n"

    def _refusal(self, refused: ComputeError) -> None:
        key = (str(refused.code), str(refused.details.get("resource", "other")))
        if key not in self.refusals and len(self.refusals) >= _MOST_REASONS:
            key = (key[0], "other")
        self.refusals[key] += 1

    def _lines(self, process: str) -> Iterator[str]:
        methods = sorted(self._methods.items())
        yield from _head("calls_total", "counter", "Calls that ended, by method and code.")
        for name, counts in methods:
            for code, count in sorted(counts.codes.items()):
                yield f'{_PREFIX}calls_total{{method="{name}",code="{code}",{process}}} {count}'
        yield from _head("call_seconds", "histogram", "How long calls took, by method.")
        for name, counts in methods:
            yield from _histogram(f'method="{name}",{process}', counts)
        yield from _head("retries_total", "counter", "Transactions lost to others and tried again, by method.")
        for name, count in sorted(self.retries.items()):
            yield f'{_PREFIX}retries_total{{method="{name}",{process}}} {count}'
        yield from _head("placement_refusals_total", "counter", "Refused placements, by code and what was lacking.")
        for (code, reason), count in sorted(self.refusals.items()):
            labels = f'code="{code}",reason="{_escaped(reason)}",{process}'
            yield f"{_PREFIX}placement_refusals_total{{{labels}}} {count}"
        yield from _head("reconciled_total", "counter", "Background steps, by reconciler and outcome.")
        for (name, outcome), count in sorted(self.reconciled.items()):
            yield f'{_PREFIX}reconciled_total{{reconciler="{name}",outcome="{outcome}",{process}}} {count}'
        yield from _head("start_time_seconds", "gauge", "When the process started, in seconds since 1970.")
        yield f"{_PREFIX}start_time_seconds{{{process}}} {self._started:.3f}"


COUNTERS: Final = Counters()
"""This process's counters."""

_PREFIX: Final = "better_compute_"

_PLACEMENT: Final = frozenset({ErrorCode.CAPACITY_UNAVAILABLE, ErrorCode.QUOTA_EXCEEDED})

_GAUGES: Final = {
    "work_due": "Keys that background steps should look at now, by reconciler.",
    "work_oldest_seconds": "How long the longest waiting of these keys is overdue.",
    "pool_connections": "Database connections of this process, by state.",
    "pool_waiting": "Calls of this process that wait for a database connection.",
    "calls_open": "Calls that this process is working on.",
}


def _head(name: str, kind: str, described: str) -> tuple[str, str]:
    return f"# HELP {_PREFIX}{name} {described}", f"# TYPE {_PREFIX}{name} {kind}"


def _histogram(labels: str, counts: _MethodCounts) -> Iterator[str]:
    below = 0
    for bound, count in zip((*BUCKETS, "+Inf"), counts.buckets, strict=True):
        below += count
        yield f'{_PREFIX}call_seconds_bucket{{{labels},le="{bound}"}} {below}'
    yield f"{_PREFIX}call_seconds_sum{{{labels}}} {counts.seconds:.6f}"
    yield f"{_PREFIX}call_seconds_count{{{labels}}} {below}"


def _gauge_lines(gauges: Sequence[Gauge], process: str) -> Iterator[str]:
    for name in dict.fromkeys(gauge.name for gauge in gauges):
        yield from _head(name, "gauge", _GAUGES[name])
        for gauge in gauges:
            if gauge.name == name:
                labels = ",".join([*(f'{key}="{_escaped(value)}"' for key, value in gauge.labels.items()), process])
                yield f"{_PREFIX}{name}{{{labels}}} {gauge.value:g}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
