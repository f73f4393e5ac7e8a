"""How single values of a policy and of a decision's context are read: numbers, their text, instants, addresses.

The rules are those of a JavaScript engine with JSON values, since the same documents are judged by IAM servers of both
kinds and must come out the same. Where Python would be more generous than that, it is held back here: a bool is no
number, no alphabet but ASCII has digits, and no lenient ISO or IP reader is trusted with an instant or an address.

Every reader answers None for what is not of its form and never raises, because context values come from anywhere.
"""

import math
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, TypeAlias, TypeGuard

Scalar: TypeAlias = str | int | float | bool
"""What a condition may list."""

Context: TypeAlias = Mapping[str, object]
"""The facts of a decision by key. Only `get` is called, and only for keys that some document names."""

MAX_INTEGER: Final = 2**53
"""The largest integer that every JSON reader holds exactly."""

_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,3}))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_PREFIX_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,2}")
_GREGORIAN_CYCLE: Final = 400
_GREGORIAN_CYCLE_DAYS: Final = 146_097
_MAPPED_V4: Final = 0xFFFF << 32
_V6_BITS: Final = 128
_V4_BITS: Final = 32
_LONGEST_ADDRESS: Final = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a finite number; True and False are not."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def scalar_text(value: object) -> str | None:
    """The text that a variable with this value stands for, None when it stands for nothing (lists, objects, null)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number_text(value) if is_number(value) else None


def parse_instant(value: object) -> int | None:
    """Milliseconds since the first day of year 1, for `2026-01-31T12:00:00.000Z` and its like with an offset."""
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = match.groups(default="0")[6:]
    offset = int(offset_hours) * 60 + int(offset_minutes)
    days = _day_number(year, month, day)
    if days is None or not _is_clock(hour, minute, second) or not _is_clock(int(offset_hours), int(offset_minutes), 0):
        return None
    minutes = (days * 24 + hour) * 60 + minute + (offset if sign == "-" else -offset)
    return (minutes * 60 + second) * 1000 + int(fraction.ljust(3, "0"))


class Address(NamedTuple):
    """An IP address; both families share one space, IPv4 in its IPv4-mapped place (RFC 4291, 2.5.5.2)."""

    bits: int
    is_v4: bool
    """Written as IPv4. Such an address is in no IPv6 network that merely surrounds the mapped block, such as `::/0`."""


class Network(NamedTuple):
    """A block of addresses: those that equal `top` after losing their last `shift` bits."""

    top: int
    shift: int

    def contains(self, address: Address) -> bool:
        """Whether the address lies inside, whichever way the two of them are spelt."""
        return address.bits >> self.shift == self.top and (self.shift <= _V4_BITS or not address.is_v4)


def parse_address(value: object) -> Address | None:
    """An IPv4 or IPv6 address; zone ids, brackets and leading zeros in IPv4 are refused."""
    if not isinstance(value, str) or len(value) > _LONGEST_ADDRESS or "%" in value:
        return None
    try:
        if ":" in value:
            return Address(int(IPv6Address(value)), is_v4=False)
        return Address(_MAPPED_V4 | int(IPv4Address(value)), is_v4=True)
    except ValueError:
        return None


def parse_network(value: object) -> Network | None:
    """An address alone or a CIDR block; bits below the prefix are ignored, as `10.1.2.3/8` is `10.0.0.0/8`."""
    if not isinstance(value, str):
        return None
    host, slash, length = value.partition("/")
    address = parse_address(host)
    if address is None or (slash and not _PREFIX_LENGTH.fullmatch(length)):
        return None
    family_bits = _V4_BITS if address.is_v4 else _V6_BITS
    shift = family_bits - int(length) if slash else 0
    return Network(address.bits >> shift, shift) if shift >= 0 else None


def _number_text(number: float) -> str | None:
    """As JavaScript prints it: no `.0`, plain digits from 1e-6 up to below 1e21, `1e+21` and `1e-7` beyond."""
    if isinstance(number, int) and abs(number) <= MAX_INTEGER:
        return str(int(number))
    try:
        number = float(number)
    except OverflowError:
        return None
    if number == 0:
        return "0"
    shortest = repr(number)
    if 1e-6 <= abs(number) < 1e21:  # noqa: PLR2004  # the two ends are JavaScript's, named in the docstring
        return f"{Decimal(shortest):f}".removesuffix(".0")
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa}e{int(exponent):+d}"


def _day_number(year: int, month: int, day: int) -> int | None:
    """Python knows no year 0, which is year 400 one Gregorian cycle earlier."""
    try:
        if year == 0:
            return date(_GREGORIAN_CYCLE, month, day).toordinal() - _GREGORIAN_CYCLE_DAYS
        return date(year, month, day).toordinal()
    except ValueError:
        return None


def _is_clock(hour: int, minute: int, second: int) -> bool:
    return hour < 24 and minute < 60 and second < 60  # noqa: PLR2004  # a day's hours, an hour's minutes
