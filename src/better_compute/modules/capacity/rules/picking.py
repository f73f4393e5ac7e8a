"""Which node of a pool to try first, from what this process remembers of the pool.

A `PoolView` holds one plain list per resource, so that a look at a node costs a few list accesses and 10,000 nodes cost
no more than 100. Up to sixteen nodes are sampled, and of the first three that fit the best by the pool's policy is
taken: random enough that two workers seldom meet on one row, good enough that nodes fill evenly or one by one. What
the view says is a hint; the guarded update in the database is the truth (design, section 8).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from better_compute.modules.capacity.schema import Wanted

SAMPLED: Final = 16
COMPARED: Final = 3


@dataclass(slots=True)
class PoolView:
    """A pool's nodes that take claims, by position; -1 stands for a resource that a node has no row for."""

    nodes: list[str]
    free: dict[str, list[int]]
    """By resource, `gpu` included."""
    labelled: list[bool]
    """Whether the node carries the placement label."""
    pack: bool = False
    """Whether the pool's policy fills one node after the other instead of spreading."""
    read_at: float = 0.0
    """Monotonic seconds."""


def pick(view: PoolView, wanted: Wanted, random: Random) -> int | None:
    """The position of a node that seems to have room, or None when none of the whole pool seems to."""
    count = len(view.nodes)
    columns = _columns(view, wanted)
    if columns is None or count == 0:
        return None
    best, best_room = None, 0
    found = 0
    for position in _sample(count, random):
        room = _room(columns, position)
        if room > 0 and (not wanted.label or view.labelled[position]):
            if best is None or (room < best_room if view.pack else room > best_room):
                best, best_room = position, room
            found += 1
            if found == COMPARED:
                break
    if best is not None:
        return best
    return _first_that_fits(view, columns, wanted, start=random.randrange(count))


def adjust(view: PoolView, position: int, wanted: Wanted, free: Sequence[int]) -> None:
    """Writes down what the database said is left on a node, per resource wanted and then of GPUs."""
    for name, left in zip(wanted.resources, free, strict=False):
        view.free[name][position] = left
    if wanted.gpus and len(free) > len(wanted.resources):
        view.free["gpu"][position] = free[len(wanted.resources)]


def exhaust(view: PoolView, position: int, lacking: str) -> None:
    """Remembers that a claim on a node failed for this resource, or for the node itself, until the next reading."""
    for name, column in view.free.items():
        if lacking in (name, "node"):
            column[position] = -1


def _columns(view: PoolView, wanted: Wanted) -> list[tuple[list[int], int]] | None:
    pairs = list(zip(wanted.resources, wanted.amounts, strict=True))
    if wanted.gpus:
        pairs.append(("gpu", wanted.gpus))
    if any(name not in view.free for name, _ in pairs):
        return None
    return [(view.free[name], amount) for name, amount in pairs]


def _sample(count: int, random: Random) -> list[int]:
    """Positions in random order, with repetitions, which is cheap and good enough; all of them in a small pool."""
    if count <= SAMPLED:
        start = random.randrange(count)
        return [(start + step) % count for step in range(count)]
    draw = random.random
    return [int(draw() * count) for _ in range(SAMPLED)]


def _room(columns: list[tuple[list[int], int]], position: int) -> int:
    """How many more of the same would fit."""
    room = 1 << 62
    for free, amount in columns:
        times = free[position] // amount
        if times < room:
            if times <= 0:
                return 0
            room = times
    return room


def _first_that_fits(view: PoolView, columns: list[tuple[list[int], int]], wanted: Wanted, *, start: int) -> int | None:
    count = len(view.nodes)
    for step in range(count):
        position = (start + step) % count
        if _room(columns, position) > 0 and (not wanted.label or view.labelled[position]):
            return position
    return None
