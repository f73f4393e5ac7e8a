from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from better_compute.base.models import Integer, TenantInput
from better_compute.cli.fields import flags_of, input_of, number
from better_compute.kernel.call import Call
from better_compute.kernel.method import AnyMethod, method
from better_compute.kernel.targets import any_caller


class Warm(TenantInput):
    min: int
    max: int | None = None


class PoolCreate(TenantInput):
    pool_id: str
    """The pool."""
    memory_gib: Annotated[int, Field(ge=1)]
    """Memory."""
    kind: Literal["shared", "custom"] = "shared"
    quota: dict[str, Integer] = Field(default_factory=dict)
    labels: list[str] = Field(default_factory=list)
    pinned: bool = False
    warm: Warm | None = None
    policy: dict[str, Any] | None = None


@pytest.fixture
def declared() -> AnyMethod:
    @method("pools.try", action="", target=any_caller(), transaction="read", positional=("pool_id",))
    async def run(call: Call, input: PoolCreate) -> str:
        """Tries."""
        return input.pool_id

    return run


def test_flags_follow_the_naming_rules(declared: AnyMethod) -> None:
    flags = {flag.flag: flag for flag in flags_of(declared)}
    assert next(iter(flags)) == "--pool"
    assert flags["--pool"].positional
    assert flags["--memory-gib"].required
    assert flags["--kind"].choices == ("shared", "custom")
    assert {"--tenant", "--quota", "--labels", "--pinned", "--warm-min", "--warm-max", "--policy"} <= set(flags)


def test_values_become_the_input_that_the_server_reads(declared: AnyMethod) -> None:
    values = {
        "tenant_id": "root",
        "pool_id": "pool_1",
        "memory_gib": "4",
        "quota": ["gpu=2", "vcpu=x"],
        "labels": ["a"],
        "warm_min": "1",
        "policy": '{"placement":"pack"}',
        "kind": None,
    }
    assert input_of(flags_of(declared), values) == {
        "tenantId": "root",
        "poolId": "pool_1",
        "memoryGiB": 4,
        "quota": {"gpu": 2, "vcpu": "x"},
        "labels": ["a"],
        "warm": {"min": 1},
        "policy": {"placement": "pack"},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [("4", 4), ("-1", -1), ("1.5", 1.5), ("true", "true"), ("4\n", "4\n"), ("", ""), ("\u0664", "\u0664")],
)
def test_numbers_travel_as_typed(text: str, value: object) -> None:
    assert number(text) == value
