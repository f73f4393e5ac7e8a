import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.sizes import parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("15m", 900), ("2h", 7200), ("1d", 86400)])
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert parse_duration(text, setting="drift_every") == seconds


@pytest.mark.parametrize("text", ["", "15", "m", "1.5h", "-1m", "0s", "15m\n", "15 m", "\u0661m", "1w"])
def test_anything_else_names_the_setting(text: str) -> None:
    with pytest.raises(ComputeError, match="drift_every") as caught:
        parse_duration(text, setting="drift_every")
    assert caught.value.code is ErrorCode.INVALID_CONFIG
