"""Reading a document: every problem at once, each with its path."""

from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.flavors.kind import FLAVOR
from better_compute.modules.fleet.rules.document import Document, read_document
from better_compute.modules.pools.kind import OFFER, POOL
from better_compute.modules.quotas.kind import OWNER_QUOTA
from better_compute.modules.sites.kind import SITE
from better_compute.testing.harness import refused

KINDS = [kind.items for kind in (SITE, POOL, OWNER_QUOTA, OFFER, FLAVOR)]


def read(document: dict[str, Any]) -> Document:
    return read_document(KINDS, document)


def problems(document: dict[str, Any]) -> list[str]:
    with refused(ErrorCode.INVALID_INPUT) as caught:
        read(document)
    return [f"{problem['path']}: {problem['message']}" for problem in caught[0].details["problems"]]


def paths(document: dict[str, Any]) -> list[str]:
    return [problem.partition(": ")[0] for problem in problems(document)]


def pool(**fields: Any) -> dict[str, Any]:
    return {"name": "vps-fra", "site": "fra", "class": "vps-host", **fields}


def flavor(**fields: Any) -> dict[str, Any]:
    return {"pool": "vps-fra", "name": "g1.small", "vcpu": 2, "memoryGiB": 4, "diskGiB": 40, **fields}


def test_all_problems_are_reported_at_once_with_their_paths() -> None:
    document = {
        "version": 1,
        "sites": [{"name": "FRA", "kind": "shared", "region": "eu"}],
        "pools": [pool(), pool(name="b", offers=[{"tenant": "acme", "quota": {"gpu": -1}}], ownerQuota={"gpu": 1.5})],
        "flavors": [flavor(), flavor()],
        "servers": [],
    }
    assert sorted(paths(document)) == [
        "config.flavors[1].name",
        "config.pools[1].offers[0].quota.gpu",
        "config.pools[1].ownerQuota.gpu",
        "config.servers",
        "config.sites[0].name",
    ]


def test_the_first_problem_is_the_path_and_the_message_counts_the_others() -> None:
    with refused(ErrorCode.INVALID_INPUT, path="config.version") as caught:
        read({"version": 2, "sites": [{"name": "fra"}]})
    assert caught[0].message == "config.version: must be 1, the only version there is (and 2 more)"


@pytest.mark.parametrize("version", [2, True, 1.0, "1", None, [1]])
def test_a_version_other_than_1_is_refused(version: object) -> None:
    assert paths({"version": version}) == ["config.version"]


def test_a_missing_version_is_refused() -> None:
    assert problems({}) == ["config.version: is missing; write version: 1"]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"sites": None}, "config.sites"),
        ({"sites": {}}, "config.sites"),
        ({"sites": ["fra"]}, "config.sites[0]"),
        ({"pools": [pool(gpuModel=None)]}, "config.pools[0].gpuModel"),
        ({"pools": [pool(offers=None)]}, "config.pools[0].offers"),
        ({"pools": [pool(ownerQuota=[])]}, "config.pools[0].ownerQuota"),
        ({"pools": [pool(ownerQuota={"2x": 1})]}, "config.pools[0].ownerQuota.2x"),
        ({"pools": [pool(memory=1)]}, "config.pools[0].memory"),
        ({"pools": [pool(policy={"spread": True})]}, "config.pools[0].policy.spread"),
        ({"pools": [pool(policy={"disruptionBudget": 2})]}, "config.pools[0].policy.disruptionBudget"),
        ({"pools": [pool(offers=[{"tenant": "a", "priority": 1001}])]}, "config.pools[0].offers[0].priority"),
        ({"flavors": [flavor(vcpu=True)]}, "config.flavors[0].vcpu"),
        ({"flavors": [flavor(vcpu="2")]}, "config.flavors[0].vcpu"),
        ({"flavors": [flavor(placement={"numa": True})]}, "config.flavors[0].placement.numa"),
        ({"sandboxTemplates": [{"pool": "vps-fra"}]}, "config.sandboxTemplates[0].name"),
        ({"providerAccounts": [{"name": "A"}]}, "config.providerAccounts[0].name"),
    ],
)
def test_malformed_values_are_refused_at_their_path(document: dict[str, Any], path: str) -> None:
    assert paths({"version": 1, **document}) == [path]


@pytest.mark.parametrize("amount", [-1, 1.5, True, "4", 2**53 + 1, None, float("nan"), float("inf")])
def test_nonsense_limits_are_refused(amount: object) -> None:
    offers = [{"tenant": "acme", "quota": {"gpu": amount}}]
    document = {"version": 1, "pools": [pool(offers=offers, ownerQuota={"gpu": amount})]}
    if isinstance(amount, float) and amount != 1.5:
        with refused(ErrorCode.INVALID_INPUT):
            read(document)
        return
    assert paths(document) == ["config.pools[0].ownerQuota.gpu", "config.pools[0].offers[0].quota.gpu"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            {"sites": [{"name": "fra", "kind": "shared", "region": "eu"}] * 2},
            "config.sites[1].name: repeats 'fra' of config.sites[0]; keep one of them",
        ),
        (
            {"pools": [pool(offers=[{"tenant": "acme"}, {"tenant": "b"}, {"tenant": "acme"}])]},
            "config.pools[0].offers[2].tenant: repeats 'acme' of config.pools[0].offers[0]; keep one of them",
        ),
        (
            {"flavors": [flavor(), flavor(pool="b"), flavor(vcpu=3)]},
            "config.flavors[2].name: repeats 'vps-fra/g1.small' of config.flavors[0]; keep one of them",
        ),
        (
            {"sandboxTemplates": [{"name": "a"}, {"name": "a"}]},
            "config.sandboxTemplates[1].name: repeats 'a' of config.sandboxTemplates[0]; keep one of them",
        ),
    ],
)
def test_repeated_names_are_refused(document: dict[str, Any], problem: str) -> None:
    assert problems({"version": 1, **document}) == [problem]


def test_a_repeat_is_reported_beside_a_malformed_value() -> None:
    assert paths({"version": 1, "flavors": [flavor(vcpu=0), flavor()]}) == [
        "config.flavors[0].vcpu",
        "config.flavors[1].name",
    ]


def test_a_list_holds_at_most_1000_items() -> None:
    sites = [{"name": f"s{number}", "kind": "shared", "region": "eu"} for number in range(1001)]
    assert problems({"version": 1, "sites": sites}) == ["config.sites: has 1001 items; a list holds at most 1000"]
    assert len(read({"version": 1, "sites": sites[:1000]}).wanted["site"]) == 1000


def test_at_most_100_problems_are_listed_and_all_are_counted() -> None:
    with refused(ErrorCode.INVALID_INPUT) as caught:
        read({"version": 1, "flavors": [flavor(name=f"f{number}", vcpu=0) for number in range(300)]})
    assert len(caught[0].details["problems"]) == 100
    assert caught[0].message.endswith("(and 299 more)")


def test_defaults_written_out_equal_defaults_left_out() -> None:
    short = read({"version": 1, "pools": [pool(offers=[{"tenant": "acme"}])], "flavors": [flavor()]})
    long = read(
        {
            "version": 1,
            "pools": [
                pool(
                    policy={},
                    offers=[{"tenant": "acme", "quota": {"gpu": 0}, "priority": 0, "includeDescendants": False}],
                )
            ],
            "flavors": [flavor(gpus=0, placement={"pinned": False, "numaAffine": False})],
        }
    )
    for kind in ("pool", "offer", "flavor"):
        assert [item.values for item in short.wanted[kind]] == [item.values for item in long.wanted[kind]]


def test_a_field_to_be_left_alone_has_no_value() -> None:
    values = read({"version": 1, "pools": [pool()]}).wanted["pool"][0].values
    assert values == {"site": "fra", "class": "vps-host", "policy": {}}


def test_an_absent_list_is_not_an_empty_one() -> None:
    document = read({"version": 1, "flavors": [], "pools": [pool(), pool(name="b", offers=[])]})
    assert document.lists == {"flavors", "pools"}
    assert document.managed == {"offer": {("b",)}}


def test_items_of_absent_kinds_are_kept_with_the_words_of_the_seed() -> None:
    document = read_document([SITE.items], {"version": 1, "sandboxTemplates": [{"name": "py"}], "flavors": [flavor()]})
    assert [(item.name, item.reason) for item in document.absent] == [
        ("vps-fra/g1.small", "this deployment does not sell flavors (vps)"),
        ("py", "this deployment does not run sandboxes (vps v0.5)"),
    ]


def test_problems_are_told_without_a_value() -> None:
    with pytest.raises(ComputeError) as caught:
        read({"version": 1, "providerAccounts": [{"name": "SECRET"}]})
    assert "SECRET" not in str(caught.value)
