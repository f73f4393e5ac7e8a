from typing import Annotated, Any

import pytest
from pydantic import Field

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import Input, Integer, SiteName, camel, parse_input, path_text


class Offer(Input):
    tenant: str
    quota: dict[str, Integer] = Field(default_factory=dict)


class Pool(Input):
    name: SiteName
    memory_gib: Annotated[int, Field(ge=1, le=64)] = 1
    offers: list[Offer] = Field(default_factory=list)


def refusal(raw: bytes | dict[str, Any]) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        parse_input(Pool, raw)
    assert caught.value.code is ErrorCode.INVALID_INPUT
    return caught.value


def test_fields_are_spelt_as_people_write_units() -> None:
    assert [camel(name) for name in ("pool_id", "memory_gib", "created_at", "name")] == [
        "poolId",
        "memoryGiB",
        "createdAt",
        "name",
    ]


def test_all_problems_are_told_with_their_paths() -> None:
    raw = b'{"name":"Fra","memoryGiB":true,"offers":[{"tenant":"a","quota":{"gpu":-1}}],"colour":"red"}'
    paths = {problem["path"] for problem in refusal(raw).details["problems"]}
    assert paths == {"name", "memoryGiB", "offers[0].quota.gpu", "colour"}


@pytest.mark.parametrize("text", ["1.5", "true", '"4"', "NaN", "1e400", "9223372036854775808", "null", "0", "65"])
def test_what_is_no_good_number_is_refused_with_its_path(text: str) -> None:
    assert refusal(f'{{"name":"fra","memoryGiB":{text}}}'.encode()).details["path"] == "memoryGiB"


@pytest.mark.parametrize("name", ["fra\\n", "Fra", "f ra", "", "a" * 64, "fr\\u0430", "fr\\uff11"])
def test_what_is_no_name_is_refused(name: str) -> None:
    assert refusal(f'{{"name":"{name}"}}'.encode()).details["path"] == "name"


def test_from_outside_only_the_outside_spelling_counts() -> None:
    assert refusal(b'{"name":"fra","memory_gib":2}').details["path"] == "memory_gib"
    assert parse_input(Pool, {"name": "fra", "memory_gib": 2}).memory_gib == 2


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"{", b'"x"', b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    refusal(raw)


def test_no_message_repeats_the_value() -> None:
    error = refusal(b'{"name":"s3cret Value","memoryGiB":77777}')
    assert "s3cret" not in str(error.details) + error.message
    assert "77777" not in str(error.details) + error.message


def test_paths_read_as_in_the_document() -> None:
    assert path_text(("config", "pools", 3, "offers", 0, "quota", "gpu")) == "config.pools[3].offers[0].quota.gpu"
