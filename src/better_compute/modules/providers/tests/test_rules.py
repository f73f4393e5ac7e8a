"""Configurations, offers and reviews as values."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.providers.exports import SIM
from better_compute.modules.providers.rules import (
    MISSING,
    UNKNOWN_GRACE_MS,
    ServerFacts,
    change_problems,
    changed_config,
    config_problems,
    matching,
    references_in,
    refuse,
    review,
)
from better_compute.modules.providers.schema import (
    DEPLOYMENT_LABEL,
    HOLDER_LABEL,
    ConfigField,
    Offer,
    OfferQuery,
    Server,
    ServerStatus,
)

FIELDS = (
    ConfigField("token", "secret", "the API token", required=True),
    ConfigField("location", "text", "where"),
    ConfigField("retries", "integer", "how often", least=0),
    ConfigField("backups", "boolean", "whether"),
)
GOOD = {"token": "secret://hetzner", "location": "fsn1", "retries": 3, "backups": True}
SCALARS = st.one_of(st.text(max_size=20), st.integers(-5, 5), st.booleans())
CONFIGS = st.dictionaries(st.sampled_from([*GOOD, "surprise"]), SCALARS)


def test_a_good_configuration_has_no_problem() -> None:
    assert config_problems(FIELDS, GOOD) == {}
    refuse({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "hcloud-CANARY"),
        ("token", "secret://"),
        ("token", 7),
        ("location", 7),
        ("retries", "3"),
        ("retries", True),
        ("retries", -1),
        ("backups", "yes"),
        ("surprise", "CANARY"),
    ],
)
def test_a_bad_field_is_told_by_path_and_never_by_value(name: str, value: object) -> None:
    with pytest.raises(ComputeError) as caught:
        refuse(config_problems(FIELDS, {**GOOD, name: value}))
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details["path"] == f"config.{name}"
    assert "CANARY" not in str(caught.value)
    assert "CANARY" not in str(caught.value.details)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ComputeError) as caught:
        refuse(config_problems(FIELDS, {"location": 1, "backups": 1}))
    paths = [problem["path"] for problem in caught.value.details["problems"]]
    assert sorted(paths) == ["config.backups", "config.location", "config.token"]
    assert "(and 2 more)" in caught.value.message


@given(CONFIGS, CONFIGS)
def test_a_change_touches_the_listed_fields_alone(current: dict[str, object], changes: dict[str, object]) -> None:
    config, fields = changed_config(current, changes)
    assert {name: value for name, value in config.items() if name not in changes} == {
        name: value for name, value in current.items() if name not in changes
    }
    assert set(fields) <= set(changes)
    again, nothing = changed_config(config, changes)
    assert (again, nothing) == (config, [])


def test_null_removes_a_field_that_may_be_left_out() -> None:
    config, fields = changed_config(GOOD, {"location": None, "retries": 3})
    assert (config, fields) == ({"token": "secret://hetzner", "retries": 3, "backups": True}, ["location"])
    assert change_problems(FIELDS, {"token": None}) == {}
    assert set(config_problems(FIELDS, changed_config(GOOD, {"token": None})[0])) == {"token"}


@given(CONFIGS)
def test_what_passes_holds_no_text_in_a_secret_field_but_references(config: dict[str, object]) -> None:
    if not config_problems(FIELDS, config):
        assert set(references_in(FIELDS, config)) == {"token"}


def test_the_simulated_provider_declares_its_fields_once() -> None:
    assert len({field.name for field in SIM.fields}) == len(SIM.fields)


def offer(ident: str, **fields: object) -> Offer:
    base = Offer(
        id=ident,
        kind="vps",
        region="fsn1",
        vcpu=2,
        memory_gib=4,
        disk_gib=40,
        price_per_hour=Decimal("0.0071"),
        currency="EUR",
        available=True,
    )
    return replace(base, **fields)  # type: ignore[arg-type]  # fields of a test


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["small", "sold-out", "metal", "gpu"]),
        ({"kind": "vps", "min_vcpu": 2}, ["small", "sold-out", "gpu"]),
        ({"min_vcpu": 3}, ["metal", "gpu"]),
        ({"min_memory_gib": 5}, ["metal"]),
        ({"min_disk_gib": 41}, ["metal"]),
        ({"region": "hel1"}, ["metal"]),
        ({"gpu_model": "L40S", "min_gpus": 1}, ["gpu"]),
        ({"available": True}, ["small", "metal", "gpu"]),
        ({"available": False}, ["sold-out"]),
    ],
)
def test_offers_match_a_query_and_come_cheapest_first(query: dict[str, object], expected: list[str]) -> None:
    offers = [
        offer("gpu", vcpu=8, gpus=1, gpu_model="L40S", price_per_hour=Decimal("1.9")),
        offer("metal", kind="metal", region="hel1", vcpu=8, memory_gib=64, disk_gib=900, price_per_hour=Decimal("0.2")),
        offer("sold-out", available=False),
        offer("small", price_per_hour=Decimal("0.0070")),
    ]
    assert [one.id for one in matching(offers, OfferQuery.model_validate(query))] == expected


NOW = 10 * UNKNOWN_GRACE_MS
HOLDERS = [f"inst_{number}" for number in range(4)]
STATUSES: list[ServerStatus] = ["starting", "running", "stopped", "deleting"]

SERVERS = st.builds(
    Server,
    id=st.sampled_from([f"srv-{number}" for number in range(6)]),
    status=st.sampled_from(STATUSES),
    labels=st.sampled_from([{HOLDER_LABEL: holder, DEPLOYMENT_LABEL: "us"} for holder in [*HOLDERS, "inst_unknown"]]),
    created_at=st.sampled_from([NOW, 0]),
)
LISTS = st.lists(SERVERS, max_size=6, unique_by=lambda server: server.id)
FACTS = st.lists(
    st.builds(
        ServerFacts,
        holder=st.sampled_from(HOLDERS),
        account_id=st.sampled_from(["pacct_ours", "pacct_other"]),
        server_id=st.one_of(st.none(), st.sampled_from([f"srv-{number}" for number in range(6)])),
        status=st.one_of(st.none(), st.sampled_from([*STATUSES, MISSING])),
        released=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda facts: facts.holder,
)


@given(LISTS, FACTS)
def test_the_server_of_a_live_record_is_never_an_orphan(listed: list[Server], known: list[ServerFacts]) -> None:
    found = review("pacct_ours", listed, known, now_ms=NOW)
    rows = {facts.holder: facts for facts in known}
    for server in found.orphans:
        facts = rows.get(server.labels[HOLDER_LABEL])
        if facts is None:
            assert NOW - server.created_at > UNKNOWN_GRACE_MS
        else:
            assert facts.account_id == "pacct_ours"
            assert facts.released or facts.server_id not in {None, server.id}


@given(LISTS, FACTS)
def test_every_server_of_a_released_record_is_an_orphan(listed: list[Server], known: list[ServerFacts]) -> None:
    found = review("pacct_ours", listed, known, now_ms=NOW)
    released = {facts.holder for facts in known if facts.released and facts.account_id == "pacct_ours"}
    for server in listed:
        if server.labels[HOLDER_LABEL] in released and server.status != "deleting":
            assert server in found.orphans


@given(LISTS, FACTS)
def test_what_was_recorded_once_is_no_news_again(listed: list[Server], known: list[ServerFacts]) -> None:
    first = review("pacct_ours", listed, known, now_ms=NOW)
    moved = dict(first.moved)
    after = [replace(facts, status=moved.get(facts.holder, facts.status)) for facts in known]
    again = review("pacct_ours", listed, after, now_ms=NOW)
    assert again == replace(first, moved=())


@given(LISTS, FACTS, st.randoms())
def test_the_order_of_a_list_does_not_matter(listed: list[Server], known: list[ServerFacts], random: object) -> None:
    turned = list(reversed(listed))
    first = review("pacct_ours", listed, known, now_ms=NOW)
    second = review("pacct_ours", turned, known, now_ms=NOW)
    assert {server.id for server in first.orphans} == {server.id for server in second.orphans}
    assert first.found == second.found
