"""Every refusal ends with what to do next."""

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.problems import error_json, error_lines


@pytest.mark.parametrize("code", ErrorCode)
def test_every_refusal_says_what_to_do_next(code: ErrorCode) -> None:
    lines = error_lines(ComputeError(code, "So it is."))
    assert lines[0] == f"{code}: So it is."
    assert lines[-1].startswith("Hint: ")


def test_several_problems_are_listed_with_their_paths() -> None:
    problems = [{"path": "a", "message": "is wrong"}, {"path": "b", "message": "too"}]
    lines = error_lines(ComputeError(ErrorCode.INVALID_INPUT, "a: is wrong", problems=problems))
    assert lines[:3] == ["INVALID_INPUT: 2 problems, nothing was done.", "  a: is wrong", "  b: too"]


def test_programs_get_no_hint() -> None:
    error = ComputeError(ErrorCode.QUOTA_EXCEEDED, "No.", resource="gpu")
    told = {"code": "QUOTA_EXCEEDED", "message": "No.", "details": {"resource": "gpu"}}
    assert error_json(error) == {"error": told}
