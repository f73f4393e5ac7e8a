"""Tables fit the terminal they are drawn on, and say what they left out."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from better_compute.cli.output import Output, fitting

ROW = {
    "version": 3,
    "tenantId": "acme",
    "flavorId": "flv_01k7c9q4w2h8d5n3r6t0v1x2y3",
    "poolId": "pool_01k7c9q4w2h8d5n3r6t0v1x2y3",
    "note": "words " * 30,
    "state": "running",
    "name": "web-1",
    "id": "inst_01k7c9q4w2h8d5n3r6t0v1x2y3",
}


def on_terminal(width: int) -> tuple[Output, io.StringIO]:
    written = io.StringIO()
    output = Output(as_json=False)
    output._console = Console(file=written, force_terminal=True, no_color=True, width=width)  # noqa: SLF001  # a terminal of a known width
    return output, written


def test_a_table_fits_and_names_what_it_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    output, written = on_terminal(80)
    output.answer({"items": [ROW, ROW]})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert "inst_01k7c9q4w2h8d5n3r6t0v1x2y3" in lines[1]
    assert "running" in lines[1]
    assert len(lines) == 3
    told = capsys.readouterr().err
    assert "poolId" in told
    assert "--json" in told


def test_a_wide_terminal_shows_everything(capsys: pytest.CaptureFixture[str]) -> None:
    output, written = on_terminal(400)
    output.answer([ROW])
    assert all(column in written.getvalue() for column in ROW if column != "version")
    assert capsys.readouterr().err == ""


def test_into_a_pipe_goes_every_column_with_what_tells_rows_apart_first(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).answer([ROW])
    header = capsys.readouterr().out.splitlines()[0].split()
    assert header == ["id", "name", "state", "tenantId", "flavorId", "poolId", "note"]


def test_what_people_wrote_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output, written = on_terminal(80)
    output.answer([{"id": "a", "name": "[red]x[/nothing]"}])
    assert "[red]x[/nothing]" in written.getvalue()


@given(
    cells=st.dictionaries(st.text(min_size=1, max_size=12), st.lists(st.text(max_size=40), max_size=3), min_size=1),
    width=st.integers(20, 200),
)
def test_the_first_column_is_always_shown_and_the_order_is_kept(cells: dict[str, list[str]], width: int) -> None:
    shown = fitting(cells, width)
    assert next(iter(shown)) == next(iter(cells))
    assert list(shown) == [column for column in cells if column in shown]
