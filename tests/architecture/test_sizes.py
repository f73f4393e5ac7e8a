"""The size limits of docs/style.md, held over the whole package."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

SRC = Path(__file__).parents[2] / "src" / "better_compute"
MAX_FILE = 400
MAX_FUNCTION = 60
MEDIAN_FUNCTION = 8
MAX_PARAMETERS = 5
FREE_PARAMETERS = {"self", "cls", "call", "tx", "step", "context"}
MANY_BY_DESIGN = {
    "method": "declares everything about a method, by keyword, and is the only place that does",
    "better_compute": "the composition root",
    "hot_query": "a statement is declared once, by keyword",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    return [path for path in sorted(SRC.rglob("*.py")) if "tests" not in path.parts]


def is_command(path: Path) -> bool:
    """Whether the file holds commands, whose parameters are the command's flags."""
    return path.parent.name == "processes" or path.name == "commands.py" or path.parent.name == "commands"


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    body = function.body
    documented = ast.get_docstring(function) is not None
    doc = (body[0].end_lineno or 0) - body[0].lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - doc


def parameters(function: Function) -> int:
    given = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return len([one for one in given if one.arg not in FREE_PARAMETERS])


def test_no_file_is_longer_than_the_limit() -> None:
    long = {str(path): lines for path in sources() if (lines := len(path.read_text().splitlines())) > MAX_FILE}
    assert not long


def test_no_function_is_longer_than_the_limit() -> None:
    long = [
        f"{path}:{one.lineno} {one.name}" for path in sources() for one in functions(path) if length(one) > MAX_FUNCTION
    ]
    assert not long


def test_the_median_function_is_short() -> None:
    lengths = [length(one) for path in sources() for one in functions(path)]
    assert median(lengths) <= MEDIAN_FUNCTION


def test_functions_take_few_parameters() -> None:
    many = [
        f"{path}:{one.lineno} {one.name} takes {parameters(one)}"
        for path in sources()
        if not is_command(path)
        for one in functions(path)
        if parameters(one) > MAX_PARAMETERS and one.name not in MANY_BY_DESIGN and one.name != "__init__"
    ]
    assert not many


def test_every_module_and_public_thing_says_what_it_is() -> None:
    silent = []
    for path in sources():
        tree = ast.parse(path.read_text())
        if tree.body and ast.get_docstring(tree) is None:
            silent.append(str(path))
        for node in tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("_") and ast.get_docstring(node) is None:
                silent.append(f"{path}:{node.lineno} {node.name}")
    assert not silent
