"""Names that tell nothing are not used, and a module's manifest says what it imports."""

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "better_compute"
EMPTY_WORDS = re.compile(r"(Manager|Helper|Base|Impl|Util|Utils|Data|Info)$")
EMPTY_FILES = {"utils.py", "helpers.py", "common.py", "misc.py", "util.py"}
CONTAINERS = ("modules", "identity")


def sources() -> list[Path]:
    return [path for path in sorted(SRC.rglob("*.py")) if "tests" not in path.parts]


def features() -> list[Path]:
    return [path.parent for name in CONTAINERS for path in sorted((SRC / name).glob("*/module.py"))]


def test_no_file_is_called_after_nothing() -> None:
    assert not [str(path) for path in sources() if path.name in EMPTY_FILES]


def test_no_class_name_ends_in_an_empty_word() -> None:
    found: list[str] = []
    for path in sources():
        classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
        found.extend(f"{path}:{node.lineno} {node.name}" for node in classes if EMPTY_WORDS.search(node.name))
    assert not found


@pytest.mark.parametrize("feature", features(), ids=lambda path: path.name)
def test_a_manifest_requires_exactly_what_the_module_uses(feature: Path) -> None:
    """A module uses another by importing it, or by naming its tables in a statement."""
    pattern = re.compile(rf"better_compute\.{feature.parent.name}\.([a-z_]+)")
    files = [path for path in feature.glob("**/*.*") if "tests" not in path.relative_to(feature).parts]
    imported = {name for path in files if path.suffix == ".py" for name in _imported(path, pattern)} - {feature.name}
    text = "\n".join(path.read_text() for path in files if path.suffix in {".py", ".sql"})
    joined = {
        other.name
        for other in features()
        if other.parent == feature.parent and other != feature
        for table in _tables(other)
        if re.search(rf"\b(from|join|update|into|references) {table}\b", text)
    }
    required = _required(feature / "module.py")
    assert imported <= required
    assert required <= imported | joined


def _tables(feature: Path) -> set[str]:
    migrations = "\n".join(path.read_text() for path in feature.glob("migrations/*.sql"))
    return set(re.findall(r"create table ([a-z_.]+)", migrations))


def _imported(path: Path, pattern: re.Pattern[str]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and (match := pattern.match(node.module)):
            names.add(match[1])
    return names


def _required(manifest: Path) -> set[str]:
    for node in ast.walk(ast.parse(manifest.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "requires":
            return {str(ast.literal_eval(item)) for item in getattr(node.value, "elts", [])}
    return set()


def test_no_import_stands_inside_a_function() -> None:
    found: list[str] = []
    for path in sources():
        if path.parent.name == "processes":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom)]
                found.extend(f"{path}:{one.lineno}" for one in inner)
    assert not found
