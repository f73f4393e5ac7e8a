"""The reference says what runs: every generated page is current, every module and method is documented."""

import json
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from better_compute.builtin import default
from better_compute.cli.help_text import root_help
from better_compute.cli.tree import Cli
from better_compute.kernel.module import Module
from better_compute.processes import PROCESSES
from better_compute.processes.commands import open_caller
from better_compute.testing.postgres import schema_sql
from better_compute.testing.reference import PAGES, owned_by

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = ROOT / "src" / "better_compute"
DESCRIBED = default()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == PAGES[name](DESCRIBED.registry), "run `make update`"


async def test_the_schema_is_what_the_migrations_make() -> None:
    assert (REFERENCE / "schema.sql").read_text() == await schema_sql(DESCRIBED.sources), "run `make update`"


def test_the_overview_help_is_current() -> None:
    groups = Cli(DESCRIBED.registry, open_caller).groups()
    processes = {name: line for name, (_, line) in PROCESSES.items()}
    assert (PACKAGE / "cli" / "help.txt").read_text() == root_help(groups, processes), "run `make update`"


def test_the_openapi_document_is_valid() -> None:
    validate(json.loads((REFERENCE / "openapi.json").read_text()))


@pytest.mark.parametrize("module", DESCRIBED.registry.modules, ids=lambda item: item.name)
def test_a_modules_readme_begins_with_what_it_owns(module: Module) -> None:
    sentence = owned_by(module)
    assert sentence[0].isupper(), sentence
    assert sentence.endswith("."), sentence


@pytest.mark.parametrize("method", DESCRIBED.registry.methods.values(), ids=lambda item: item.name)
def test_every_method_and_field_is_described(method: object) -> None:
    described = getattr(method, "described", "")
    assert described.endswith((".", ":", "`")) or "\n" in described, "a method's docstring is its reference"
    for name, field in getattr(method, "input").model_fields.items():  # noqa: B009  # parametrized as object
        assert field.description, f"{name} says nothing"
