"""Without permission every method is refused, hidden ids look missing, and nothing changes."""

import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import MODULES
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.registry import build_registry
from better_compute.testing.factories import smallest_input
from better_compute.testing.harness import Harness, harness

REGISTRY = build_registry(MODULES)
METHODS = sorted(REGISTRY.methods.values(), key=lambda item: item.name)
DECIDED = [item for item in METHODS if item.action]

TABLES = """select format('%I.%I', table_schema, table_name) from information_schema.tables
            where table_schema in ('public', 'iam') and table_type = 'BASE TABLE' and table_name <> 'audit'"""


def count_rows(platform: Harness) -> list[tuple[Any, ...]]:
    """How many rows every table has, the audit trail excepted."""
    with psycopg.connect(platform.database.settings.url) as connection:
        tables = [row[0] for row in connection.execute(TABLES)]
        counts = " union all ".join(f"select '{table}', count(*) from {table}" for table in tables)
        return connection.execute(counts.encode()).fetchall()


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform() -> AsyncIterator[Harness]:
    async with harness(*MODULES) as opened:
        yield opened


async def attempt(platform: Harness, method: AnyMethod, *, as_: str, tenant_id: str) -> ComputeError:
    given = smallest_input(method, tenant_id=tenant_id)
    with pytest.raises(ComputeError) as caught:
        await platform.app.envelope.call(method, as_, _json(given))
    return caught.value


def _json(given: dict[str, Any]) -> bytes:
    return json.dumps(given).encode()


@pytest.mark.parametrize("method", DECIDED, ids=lambda item: item.name)
async def test_a_caller_without_grants_is_refused_and_nothing_changes(platform: Harness, method: AnyMethod) -> None:
    before = count_rows(platform)
    error = await attempt(platform, method, as_="nobody", tenant_id="acme")
    assert error.code in {ErrorCode.ACCESS_DENIED, ErrorCode.NOT_FOUND}, error
    assert count_rows(platform) == before


@pytest.mark.parametrize("method", DECIDED, ids=lambda item: item.name)
async def test_a_caller_of_another_tenant_is_refused_before_anything_is_read(
    platform: Harness, method: AnyMethod
) -> None:
    error = await attempt(platform, method, as_="globex", tenant_id="acme")
    assert error.code is ErrorCode.ACCESS_DENIED, error
    assert "globex" in error.message


@pytest.mark.parametrize("method", [item for item in METHODS if not item.public], ids=lambda item: item.name)
async def test_a_caller_without_a_token_is_refused(platform: Harness, method: AnyMethod) -> None:
    given = smallest_input(method, tenant_id="acme")
    with pytest.raises(ComputeError) as caught:
        await platform.app.envelope.call(method, None, _json(given))
    assert caught.value.code is ErrorCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", DECIDED, ids=lambda item: item.name)
async def test_an_action_is_named_after_its_group(method: AnyMethod) -> None:
    space, group, verb = method.action.split(":")
    assert space in {"compute", "iam"}
    assert group
    assert verb


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
async def test_a_method_that_makes_something_can_be_asked_for_it_again(method: AnyMethod) -> None:
    if "idempotency_key" in method.input.model_fields:
        assert method.makes
        assert method.stored
