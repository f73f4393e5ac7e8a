"""What a quota's numbers mean, without a database.

`used` may be above `max` after a cut or a withdrawn offer. That is no fault: nothing new fits, every release still
works, and what is available is 0 (design, section 7).
"""

from collections.abc import Mapping


def available(maximum: int | None, used: int) -> int | None:
    """What is left under a maximum, never below 0; None without one."""
    return None if maximum is None else max(maximum - used, 0)


def arrays(amounts: Mapping[str, int]) -> tuple[list[str], list[int]]:
    """Amounts as the SQL functions take them, in the order in which rows are locked."""
    ordered = sorted(amounts.items())
    return [resource for resource, _ in ordered], [amount for _, amount in ordered]
