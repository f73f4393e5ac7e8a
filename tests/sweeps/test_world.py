"""Rules that hold for every method once there is one of everything: tenants apart, keys kept."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import MODULES
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.registry import build_registry
from better_compute.testing.harness import Harness, harness
from better_compute.testing.world import World, make_world

METHODS = sorted(build_registry(MODULES).methods.values(), key=lambda item: item.name)
MAKERS = [item for item in METHODS if "idempotency_key" in item.input.model_fields]
LISTS = [item for item in METHODS if item.verb.startswith("list")]
NAMING = [
    item
    for item in METHODS
    if item not in LISTS and any(name.endswith("_id") and name != "tenant_id" for name in item.input.model_fields)
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def h() -> AsyncIterator[Harness]:
    async with harness(*MODULES) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(h: Harness) -> World:
    return await make_world(h)


async def call(h: Harness, method: AnyMethod, given: dict[str, Any], *, as_: str = "root") -> Any:
    return await h.app.envelope.call(method, as_, json.dumps(given))


async def attempt(h: Harness, method: AnyMethod, given: dict[str, Any], *, as_: str = "root") -> ComputeError | None:
    try:
        await call(h, method, given, as_=as_)
    except ComputeError as error:
        return error
    return None


async def test_there_is_one_of_everything(world: World) -> None:
    assert not {name: str(error) for name, error in world.refused.items()}


@pytest.mark.parametrize("method", NAMING, ids=lambda item: item.name)
async def test_another_tenants_id_never_answers(h: Harness, world: World, method: AnyMethod) -> None:
    """In a tenant's own view, what belongs to another one does not exist, also for one who may do everything there."""
    given = {**world.input(method), "tenantId": "globex"}
    if not any(given.get(key) == value for key, value in world.known.items()):
        pytest.fail(f"{method.name} names nothing that this world has; see testing/world.py")
    error = await attempt(h, method, given, as_="globex")
    assert error is not None
    assert error.code in {ErrorCode.NOT_FOUND, ErrorCode.ACCESS_DENIED}, error


@pytest.mark.parametrize("method", LISTS, ids=lambda item: item.name)
async def test_a_list_shows_nothing_of_another_tenant(h: Harness, world: World, method: AnyMethod) -> None:
    given = {**world.input(method), "tenantId": "globex"}
    error = await attempt(h, method, given, as_="globex")
    assert error is None or error.code in {ErrorCode.NOT_FOUND, ErrorCode.ACCESS_DENIED}, error
    text = "" if error else method.dump(await call(h, method, given, as_="globex")).decode()
    assert not [value for value in world.known.values() if isinstance(value, str) and f'"{value}"' in text]


@pytest.mark.parametrize("method", MAKERS, ids=lambda item: item.name)
async def test_a_key_makes_one_object(h: Harness, world: World, method: AnyMethod) -> None:
    given = {**world.input(method, number=1), "idempotencyKey": "one"}
    first = await call(h, method, given)
    again = await call(h, method, given)
    assert first.id == again.id


@pytest.mark.parametrize("method", MAKERS, ids=lambda item: item.name)
async def test_a_key_with_another_input_is_a_conflict(h: Harness, world: World, method: AnyMethod) -> None:
    given = {**world.input(method, number=2), "idempotencyKey": "two"}
    await call(h, method, given)
    other = {**given, **_changed(given)}
    error = await attempt(h, method, other)
    assert error is not None
    assert error.code is ErrorCode.CONFLICT, error


@pytest.mark.parametrize("method", MAKERS, ids=lambda item: item.name)
async def test_another_callers_key_is_another_key(h: Harness, world: World, method: AnyMethod) -> None:
    h.iam.add("other", tenant_id="root", actions=["*"])
    first = await call(h, method, {**world.input(method, number=3), "idempotencyKey": "three"})
    second = await call(h, method, {**world.input(method, number=4), "idempotencyKey": "three"}, as_="other")
    assert first.id != second.id


def _changed(given: dict[str, Any]) -> dict[str, Any]:
    """Another value for one field that says something about the object."""
    for name in ("name", "region", "diskGiB", "sizeGiB"):
        if name in given:
            return {name: f"{given[name]}x" if isinstance(given[name], str) else given[name] + 1}
    return {"ownerQuota": {"vcpu": 1}}
