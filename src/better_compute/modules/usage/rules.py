"""From what was held and for how long to windows; times are whole seconds since the epoch, which know no time zone.

The boundaries of an allocation's windows follow from the allocation alone: its own beginning and end, its changes of
shape, and the full hours. So planning from any earlier point gives the same windows again, and never others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

HOUR: Final = 3600
GRACE: Final = 60
"""How long after an hour's end it is closed for what is still held: no transaction takes that long to commit."""

MOST_HOURS: Final = 31 * 24
"""How much of one allocation is planned at once, so that catching up on years is done in pieces."""

MEMORY: Final = frozenset({"memoryGiB", "hugepages1Gi", "hugepages2Mi"})
"""What a guest's memory may be claimed as; it is metered by its size, whatever pages back it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What was held until some time."""

    resources: Sequence[str]
    amounts: Sequence[int]
    until: int | None = None
    """When another shape followed; None for the one that is held now, or was last."""


@dataclass(frozen=True, slots=True)
class Held:
    """One allocation and how far it is metered."""

    allocation_id: str
    tenant_id: str
    object_id: str
    pool_id: str
    project_id: str | None
    gpu_model: str
    gpus: int
    shapes: tuple[Shape, ...]
    """In order of time; the last one has no end."""
    since: int
    """When it was placed."""
    until: int | None
    """When it was released."""
    metered_until: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """One row to write."""

    tenant_id: str
    object_id: str
    meter: str
    starts_at: int
    ends_at: int
    pool_id: str
    project_id: str | None
    size: int

    @property
    def unit_seconds(self) -> int:
        """The exact amount."""
        return self.size * (self.ends_at - self.starts_at)


@dataclass(frozen=True, slots=True)
class Metered:
    """What to write for one allocation."""

    allocation_id: str
    tenant_id: str
    until: int
    """How far it is metered then."""
    complete: bool
    """Whether that is all there is until another hour is closed."""
    settled: bool
    """Whether that is all there will ever be."""
    windows: tuple[Window, ...]


def closed_hour(now: int) -> int:
    """Up to when use that goes on is closed."""
    return _hour_of(now - GRACE)


def meter_allocation(held: Held, *, closed: int) -> Metered | None:
    """The windows of an allocation that are closed and not written; None when there is nothing to note."""
    start = held.since if held.metered_until is None else max(held.since, held.metered_until)
    end = closed if held.until is None else held.until
    stop = max(start, min(end, _hour_of(start) + MOST_HOURS * HOUR))
    complete = stop >= end
    settled = complete and held.until is not None
    if stop == start and not settled:
        return None
    windows = [
        _window(held, meter, size, span=(begins, ends))
        for begins, ends, shape in _spans(held, start, stop)
        for meter, size in sizes_of(shape, gpus=held.gpus, gpu_model=held.gpu_model).items()
    ]
    return Metered(
        allocation_id=held.allocation_id,
        tenant_id=held.tenant_id,
        until=stop,
        complete=complete,
        settled=settled,
        windows=tuple(windows),
    )


def sizes_of(shape: Shape, *, gpus: int, gpu_model: str) -> dict[str, int]:
    """How many units a shape holds on each meter; meters that it does not touch are left out."""
    amounts = dict(zip(shape.resources, shape.amounts, strict=True))
    sizes = {
        "vps.vcpu.hours": amounts.get("vcpu", 0),
        "vps.memory.gib.hours": sum(amounts.get(name, 0) for name in MEMORY),
        f"gpu.{gpu_model.lower()}.hours": gpus,
    }
    return {meter: size for meter, size in sizes.items() if size}


def hours_text(unit_seconds: int) -> str:
    """Unit-seconds as hours, rounded to six digits, without digits that say nothing."""
    hours = (Decimal(unit_seconds) / HOUR).quantize(Decimal("0.000001"))
    return f"{hours.normalize():f}"


def _spans(held: Held, start: int, stop: int) -> Iterator[tuple[int, int, Shape]]:
    """The span from start to stop, cut at full hours and wherever the shape changed."""
    changes: Mapping[int, Shape] = {shape.until: shape for shape in held.shapes if shape.until is not None}
    while start < stop:
        following = [until for until in changes if until > start]
        change = min(following, default=stop)
        shape = changes[change] if following else held.shapes[-1]
        ends = min(stop, change, _hour_of(start) + HOUR)
        yield start, ends, shape
        start = ends


def _window(held: Held, meter: str, size: int, *, span: tuple[int, int]) -> Window:
    return Window(
        tenant_id=held.tenant_id,
        object_id=held.object_id,
        meter=meter,
        starts_at=span[0],
        ends_at=span[1],
        pool_id=held.pool_id,
        project_id=held.project_id,
        size=size,
    )


def _hour_of(second: int) -> int:
    return second - second % HOUR
