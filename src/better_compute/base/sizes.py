"""Durations as people write them in settings.

`15m`, `30s`, `2h`, `1d`: one integer and one unit, nothing else, so that a reader never has to guess. Sizes need no
parsing: every size in the API is an integer whose unit stands in its name.
"""

import re
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode

_DURATION: Final = re.compile(r"([0-9]{1,9})(s|m|h|d)", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str, *, setting: str) -> int:
    """Seconds in a duration such as `15m`; INVALID_CONFIG that names the setting, also for zero."""
    match = _DURATION.fullmatch(text)
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if seconds == 0:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"{setting} is {text!r}; write a whole number above 0 and a unit, such as 30s, 15m, 2h or 1d.",
        )
    return seconds
