"""A module sees of another only what that one shows: its exports and its schema.

The rest of the import rules are import-linter contracts in pyproject.toml. This one is here because no contract type
says "of every other module, these two files".
"""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
CONTAINERS = ("modules", "identity")
SHOWN = {"exports", "schema"}


def features() -> list[Path]:
    root = SRC / "better_compute"
    return [path.parent for name in CONTAINERS for path in sorted((root / name).glob("*/module.py"))]


def imports_of_other_features(feature: Path) -> list[tuple[str, list[str]]]:
    """Where it stands, and the import as its parts after the container."""
    prefix = f"better_compute.{feature.parent.name}."
    found: list[tuple[str, list[str]]] = []
    for path in sorted(feature.rglob("*.py")):
        if "tests" in path.relative_to(feature).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(prefix):
                continue
            base = (node.module or "").removeprefix(prefix).split(".")
            for alias in node.names:
                parts = [*base, alias.name]
                if parts[0] != feature.name:
                    found.append((f"{path.relative_to(SRC)}:{node.lineno}", parts))
    return found


@pytest.mark.parametrize("feature", features(), ids=lambda path: path.name)
def test_a_module_imports_only_what_another_shows(feature: Path) -> None:
    assert not [where for where, parts in imports_of_other_features(feature) if parts[1] not in SHOWN]


def test_fleet_imports_no_feature() -> None:
    assert not imports_of_other_features(SRC / "better_compute" / "modules" / "fleet")


@pytest.mark.parametrize("feature", features(), ids=lambda path: path.name)
def test_rules_know_values_alone(feature: Path) -> None:
    """Rules take facts and answer values, so that they can be tried by the thousand."""
    allowed = ("base", "wire", "iam.policy", "kernel.events", "kernel.resources", "kernel.kinds", "kernel.principal")
    files = [feature / "rules.py", *sorted((feature / "rules").rglob("*.py"))]
    wrong: list[str] = []
    for path in files:
        if not path.exists():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("better_compute."):
                continue
            name = (node.module or "").removeprefix("better_compute.")
            inside = name.split(".")[0] in CONTAINERS and name.split(".")[2] in {"rules", "schema"}
            if not inside and not name.startswith(allowed):
                wrong.append(f"{path.relative_to(SRC)}:{node.lineno} {name}")
    assert not wrong
