"""Files become documents, or a refusal with the line and the path of what is wrong."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.fleet.commands.json_text import json_lines
from better_compute.modules.fleet.commands.reading import read_json, read_source, read_yaml


def written(tmp_path: Path, text: str | bytes, name: str = "fleet.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        read_source(path)
    assert caught.value.code is ErrorCode.INVALID_INPUT
    return caught.value


SEED_JSON = """{
  "version": 1,
  "pools": [{ "name": "vps-fra", "policy": { "disruptionBudget": 0.1 }, "offers": [{ "tenant": "acme" }] }]
}"""

SEED_YAML = """
# the fleet
version: 1
pools:
  - name: vps-fra
    policy: { disruptionBudget: 0.1 }
    offers:
      - tenant: acme
"""


def test_json_and_yaml_are_the_same_document(tmp_path: Path) -> None:
    expected = json.loads(SEED_JSON)
    assert read_source(written(tmp_path, SEED_JSON, "fleet.json")).document == expected
    assert read_source(written(tmp_path, SEED_YAML)).document == expected
    assert read_source(written(tmp_path, SEED_JSON, "fleet.yaml")).document == expected
    assert read_source(written(tmp_path, SEED_JSON, "fleet.txt")).document == expected
    assert read_source(written(tmp_path, SEED_YAML, "fleet.txt")).document == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("0600", 600),
        ("0o600", 384),
        ("0x1F", 31),
        ("-7", -7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("True", True),
        ("~", None),
        ("null", None),
        ("'1'", "1"),
        ('"no"', "no"),
        ("|\n  a\n  b", "a\nb\n"),
        ("secret://root/sec_1", "secret://root/sec_1"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_scalar_means_what_a_reader_thinks(text: str, value: Any) -> None:
    read = read_yaml(f"key: {text}\n", "f")["key"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "path", "part"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "config", "the key 'a' twice"),
        ("pools:\n  - name: x\n    name: y\n", 3, "config.pools[0]", "the key 'name' twice"),
        ("a: &x 1\nb: *x\n", 1, "config.a", "anchor or alias"),
        ("a: [1, *x]\n", 1, "config.a[1]", "anchor or alias"),
        ("a: !!str 1\n", 1, "config.a", "tag"),
        ("a: !python/object:os.system x\n", 1, "config.a", "tag"),
        ("a: 1\n---\nb: 2\n", 2, "config", "second document"),
        ("%YAML 1.1\n---\na: no\n", 2, "config", "directive"),
        ("? [1, 2]\n: 3\n", 1, "config", "no text"),
        ("a: .inf\n", 1, "config.a", "no number"),
        ("a: [1, .nan]\n", 1, "config.a[1]", "no number"),
        ("a: 1e400\n", 1, "config.a", "no number"),
        ("b: 1\na: 111111111111111111111\n", 2, "config.a", "more than 20 digits"),
        ('a: "\\ud800"\n', 1, "config.a", ""),
        ("- a\n", 1, "config", "not an object"),
        ("", 1, "config", "not an object"),
    ],
)
def test_what_would_surprise_a_reader_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, path: str, part: str
) -> None:
    error = refusal(written(tmp_path, text))
    assert part in error.message
    assert f"fleet.yaml:{error.details['line']}" in error.message
    assert error.details["path"] == path
    assert abs(error.details["line"] - line) <= (1 if part == "directive" else 0)  # libyaml marks what follows it


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a:\n\tb: 1\n", 2, "tab"),
        ("a:\n  b: 1\n\tc: 2\n", 3, "tab"),
        ("a: 'x\n", 2, "is not YAML"),
        ("a: 1\n b: 2\n", 2, "is not YAML"),
        ("a: [1, 2\nb: 3\n", 2, "is not YAML"),
        ("a: @x\n", 1, "is not YAML"),
        ("a: \x07\n", 1, "is not YAML"),
    ],
)
def test_what_is_not_yaml_is_refused_with_its_line(tmp_path: Path, text: str, line: int, part: str) -> None:
    error = refusal(written(tmp_path, text))
    assert part in error.message
    assert abs(error.details["line"] - line) <= 1
    assert error.details["path"].startswith("config")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('{"a": 1,\n "a": 2}', 2, "the key 'a' twice"),
        ('{"pools": [\n {"name": 1, "name": 2}]}', 2, "the key 'name' twice"),
        ('{"a": NaN}', 1, "NaN"),
        ('{"a": 1', 1, "is not JSON"),
        ('{"a": 1,}', 1, "is not JSON"),
        ("[1]", 1, "not an object"),
        ("", 1, "is not JSON"),
        ('{"a": 1,\n"b": 1e400}', 2, "too large"),
        ('{"a": 1,\n"b": ["\\ud800"]}', 2, "surrogate"),
        ('{"a": 1,\n"\\ud800": 1}', 1, "surrogate"),
        ('{"a": ' + "1" * 5000 + "}", 1, "is not JSON"),
    ],
)
def test_json_is_held_to_the_same_rules(tmp_path: Path, text: str, line: int, part: str) -> None:
    error = refusal(written(tmp_path, text, "fleet.json"))
    assert part in error.message
    assert error.details["line"] == line


def test_a_repeated_key_is_refused_with_its_path_in_json_too(tmp_path: Path) -> None:
    error = refusal(written(tmp_path, '{"pools": [{"name": "a"}, {"offers": {"x": 1, "x": 2}}]}', "fleet.json"))
    assert error.details["path"] == "config.pools[1].offers"


@pytest.mark.parametrize("name", ["fleet.yaml", "fleet.json"])
def test_depth_and_size_are_bounded_in_time(tmp_path: Path, name: str) -> None:
    began = time.monotonic()
    assert "deeper than 64" in refusal(written(tmp_path, '{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", name)).message
    assert "deeper than 64" in refusal(written(tmp_path, '{"a": ' + "[" * 70 + "]" * 70 + "}", name)).message
    assert "larger than 8 MiB" in refusal(written(tmp_path, b'{"a": "' + b"x" * 50_000_000 + b'"}', name)).message
    assert time.monotonic() - began < 20


def test_what_is_not_text_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "fleet.json:2: is not UTF-8" in refusal(written(tmp_path, b'{\n"a": "\xff"}', "fleet.json")).message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(tmp_path / "none.json").message
    assert "cannot be read: Is a directory" in refusal(tmp_path).message


def test_problems_found_later_get_the_line_of_the_file(tmp_path: Path) -> None:
    problems = [
        {"path": "config.pools[0].offers[0].quota.vcpu", "message": "too many"},
        {"path": "config.pools[0].site", "message": "missing"},
        {"path": "tenantId", "message": "not ours"},
    ]
    later = ComputeError(ErrorCode.INVALID_INPUT, "bad", path=problems[0]["path"], problems=problems)
    yaml = read_source(written(tmp_path, SEED_YAML)).located(later)
    assert [problem.get("line") for problem in yaml.details["problems"]] == [8, 5, None]
    assert yaml.message.endswith("fleet.yaml:8: bad")
    assert yaml.details["problems"][0]["message"] == "line 8: too many"
    told = read_source(written(tmp_path, SEED_JSON, "fleet.json")).located(later)
    assert [problem.get("line") for problem in told.details["problems"]] == [3, 3, None]
    other = ComputeError(ErrorCode.CONFLICT, "elsewhere")
    assert read_source(written(tmp_path, SEED_YAML)).located(other) is other


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_any_json_is_read_as_python_reads_it(value: Any) -> None:
    written_out = json.dumps(value, indent=1)
    assume("\\ud" not in written_out)
    assert read_json(written_out, "f") == value
    lines = json_lines(written_out)
    assert set(lines) == set(places(value))
    assert lines[()] == 1


def places(value: Any, loc: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield loc
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*loc, key))
