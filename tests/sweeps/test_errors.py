"""Only declared codes leave a method, and a refusal leaves everything as it was."""

import json

import pytest

from better_compute.base.errors import ENVELOPE_CODES, ComputeError
from better_compute.builtin import MODULES
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.registry import build_registry
from better_compute.testing.harness import harness
from better_compute.testing.world import make_world

METHODS = sorted(build_registry(MODULES).methods.values(), key=lambda item: item.name)


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
async def test_only_declared_codes_leave_a_method(method: AnyMethod) -> None:
    """Each method is called in a world of its own, twice: what it did the first time must not surprise it."""
    async with harness(*MODULES) as h:
        world = await make_world(h)
        for _ in range(2):
            try:
                await h.app.envelope.call(method, "root", json.dumps(world.input(method, number=1)))
            except ComputeError as error:
                assert error.code in method.errors | ENVELOPE_CODES, error  # noqa: PT017  # either way is fine
