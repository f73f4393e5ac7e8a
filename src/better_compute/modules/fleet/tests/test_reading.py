"""Files become documents, or a refusal with the line and the path of what is wrong."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.fleet.commands.reading import read_file, read_yaml


def written(tmp_path: Path, text: str | bytes, name: str = "fleet.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        read_file(path)
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
    assert read_file(written(tmp_path, SEED_JSON, "fleet.json")) == expected
    assert read_file(written(tmp_path, SEED_YAML)) == expected
    assert read_file(written(tmp_path, SEED_JSON, "fleet.yaml")) == expected
    assert read_file(written(tmp_path, SEED_JSON, "fleet.txt")) == expected
    assert read_file(written(tmp_path, SEED_YAML, "fleet.txt")) == expected


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
        (".inf", ".inf"),
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
        ("a:\n\tb: 1\n", 2, "config", "is not YAML"),
        ("a: 'x\n", 1, "config", "is not YAML"),
        ("a: 1\n b: 2\n", 2, "config", "is not YAML"),
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
    assert abs(error.details["line"] - line) <= (1 if part == "is not YAML" else 0)


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
