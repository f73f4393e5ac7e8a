"""What the machine and its processes did meanwhile, read from /proc: stolen time, processor time, memory.

A round of a benchmark is worth little when the machine had other things to do: `Watch` says what share of its time went
to the hypervisor or to programs that are none of ours. Linux only.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_STEAL: Final = 0.02
MAX_OTHERS: Final = 0.06
"""How much of the machine other programs and the kernel's own threads may take in a round that counts."""

LOOK_SECONDS: Final = 1.0

_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Ticks:
    stolen: int
    busy: int
    total: int
    ours: int


class Watch:
    """Looks at the machine from the moment it is made until it is asked."""

    def __init__(self) -> None:
        self._before = _ticks()

    def seen(self) -> "Disturbance":
        """How much of the machine went elsewhere since then."""
        now, before = _ticks(), self._before
        total = max(1, now.total - before.total)
        others = now.busy - before.busy - (now.ours - before.ours)
        return Disturbance(stolen=(now.stolen - before.stolen) / total, others=max(0.0, others / total))


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What a stretch of time lost, as shares of the machine."""

    stolen: float
    """To the hypervisor."""
    others: float
    """To programs that are none of ours, and the kernel's own threads."""

    @property
    def quiet(self) -> bool:
        """Whether it was too little to matter."""
        return self.stolen <= MAX_STEAL and self.others <= MAX_OTHERS


async def quiet(*, patience_seconds: float) -> None:
    """Waits, with nothing of ours running, for a second in which nobody else wants the machine; gives up in time."""
    for _ in range(round(patience_seconds / LOOK_SECONDS)):
        watch = Watch()
        await asyncio.sleep(LOOK_SECONDS)
        if watch.seen().quiet:
            return


def processor_seconds(pid: int) -> float:
    """What a process, its descendants and those of them that have ended have used so far."""
    return _tree_ticks(pid) * _TICK


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def memory_mib(pid: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def processor() -> str:
    """The processor's name, and how many of them there are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} x {model}"


def _ticks() -> _Ticks:
    user, nice, system, idle, waiting, irq, softirq, steal = (
        int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    busy = user + nice + system + irq + softirq
    return _Ticks(stolen=steal, busy=busy, total=busy + idle + waiting + steal, ours=_tree_ticks(os.getpid()))


def _tree_ticks(root: int) -> int:
    parents: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended while we looked
            used[int(entry.name)] = sum(map(int, fields[11:15]))
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        found += used.get(pid, 0)
        waiting += parents.get(pid, [])
    return found
