"""Shapes of flavors, by property: what means the same is stored the same, and what is charged is the shape."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.flavors.rules import canonical_placement, charges, check_shape, placement_view
from better_compute.modules.flavors.schema import FlavorPlacement, FlavorShape
from better_compute.testing.harness import refused

PLACEMENTS = st.fixed_dictionaries(
    {},
    optional={
        "numa_affine": st.booleans(),
        "pinned": st.booleans(),
        "strict": st.booleans(),
        "hugepages": st.sampled_from(["2Mi", "1Gi"]),
    },
)
AMOUNT = st.integers(1, 1024)
GPUS = st.integers(0, 64)
CLASSES = ("vps-host", "metal-host", "metal-dedicated", "provider")


def shape(*, gpus: int = 0, placement: dict[str, Any] | None = None) -> FlavorShape:
    return FlavorShape(
        tenant_id="root",
        pool_id="pool",
        name="g",
        vcpu=1,
        memory_gib=1,
        disk_gib=1,
        gpus=gpus,
        placement=FlavorPlacement(**(placement or {})),
    )


@given(PLACEMENTS)
def test_a_flag_that_is_false_is_a_flag_left_out(given_flags: dict[str, Any]) -> None:
    off = {"numa_affine": False, "pinned": False, "strict": False}
    stored = canonical_placement(FlavorPlacement(**given_flags))
    assert canonical_placement(FlavorPlacement(**{**off, **given_flags})) == stored
    assert all(stored.values())
    assert list(stored) == sorted(stored)


@given(PLACEMENTS)
def test_a_placement_is_answered_as_it_was_meant(given_flags: dict[str, Any]) -> None:
    stored = canonical_placement(FlavorPlacement(**given_flags))
    view = placement_view(stored)
    assert (view is None) == (not stored)
    if view is not None:
        told = {
            "numaAffine": view.numa_affine,
            "pinned": view.pinned,
            "hugepages": view.hugepages,
            "strict": view.strict,
        }
        assert {name: value for name, value in told.items() if value} == stored


@given(AMOUNT, AMOUNT, AMOUNT, GPUS)
def test_what_is_charged_is_the_shape_and_gpus_only_where_there_are_some(
    vcpu: int, memory_gib: int, disk_gib: int, gpus: int
) -> None:
    charged = charges(vcpu=vcpu, memory_gib=memory_gib, disk_gib=disk_gib, gpus=gpus)
    expected = {"vcpu": vcpu, "memoryGiB": memory_gib, "diskGiB": disk_gib}
    assert charged == expected | ({"gpu": gpus} if gpus else {})


@given(st.sampled_from(CLASSES), GPUS, st.sampled_from([None, "L40S"]), st.sampled_from([None, "cx22"]))
def test_a_shape_fits_its_pool_exactly_when_the_seed_says_so(
    pool_class: str, gpus: int, gpu_model: str | None, offer_id: str | None
) -> None:
    fits = (gpus == 0 or gpu_model is not None) and (pool_class == "provider") == (offer_id is not None)
    try:
        check_shape(shape(gpus=gpus), pool_class=pool_class, gpu_model=gpu_model, offer_id=offer_id)
        refusal = None
    except ComputeError as error:
        refusal = error
    assert (refusal is None) == fits
    assert refusal is None or refusal.code is ErrorCode.INVALID_INPUT


@pytest.mark.parametrize("placement", [{"pinned": True}, {"hugepages": "1Gi"}, {"strict": True}])
def test_a_provider_is_not_told_where_its_machines_live(placement: dict[str, Any]) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="placement"):
        check_shape(shape(placement=placement), pool_class="provider", gpu_model=None, offer_id="cx22")
