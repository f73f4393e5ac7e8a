"""The planner against random documents and random fleets, in a model of the fleet that runs the calls in memory.

The model knows what each call does to a fleet and nothing about plans; so what holds here holds because the planner and
the kinds agree on what they ask for.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from better_compute.base.items import Live, NewRef
from better_compute.modules.flavors.kind import FLAVOR
from better_compute.modules.fleet.rules.document import read_document
from better_compute.modules.fleet.rules.drift import drift_hash
from better_compute.modules.fleet.rules.export import write_document
from better_compute.modules.fleet.rules.fleet import EMPTY, Fleet, Snapshot
from better_compute.modules.fleet.rules.names import NameRow, Names
from better_compute.modules.fleet.rules.order import ordered_kinds
from better_compute.modules.fleet.rules.plan import Options, Plan, make_plan
from better_compute.modules.fleet.rules.values import written
from better_compute.modules.pools.kind import OFFER, POOL
from better_compute.modules.quotas.kind import OWNER_QUOTA
from better_compute.modules.sites.kind import SITE

KINDS = ordered_kinds([kind.items for kind in (OFFER, FLAVOR, OWNER_QUOTA, SITE, POOL)])
NAMES = ("a", "b", "c", "site_x")
RESOURCES = ("vcpu", "gpu")
TENANTS = ("acme", "globex", "root")
DEADLINE_FREE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Model:
    """A fleet in memory: objects by id, and what calls do to them."""

    sites: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    offers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    quotas: dict[tuple[str, str], int] = field(default_factory=dict)
    flavors: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    names: dict[tuple[str, str], NameRow] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    used_flavors: bool = False

    def snapshot(self) -> Snapshot:
        live: Mapping[str, Sequence[Live]] = {
            "site": [Live(ident=ident, values=values) for ident, values in self.sites.items()],
            "pool": [
                Live(ident=ident, values=values, held="protected" if values.get("protected") else "")
                for ident, values in self.pools.items()
                if not values.get("archived")
            ],
            "offer": [
                Live(ident=to, name=to, owner_id=pool, values=values) for (pool, to), values in self.offers.items()
            ],
            "ownerQuota": [
                Live(ident=resource, name=resource, owner_id=pool, values={"max": amount})
                for (pool, resource), amount in self.quotas.items()
            ],
            "flavor": [
                Live(ident=f"flv_{name}", name=name, owner_id=pool, values=values, archived=values["archived"])
                for (pool, name), values in self.flavors.items()
            ],
        }
        return Snapshot(
            tenant_id="root",
            live=live,
            names=Names(self.names.values()),
            outside={"site": "root", "offer": {"acme": "active", "globex": "suspended"}},
        )

    def apply(self, plan: Plan) -> None:
        ids: dict[str, str] = {}
        for step in plan.steps:
            assert step.call is not None
            given_input = {name: ids.get(str(value), value) for name, value in step.call.input.items()}
            assert not any(isinstance(value, NewRef) for value in given_input.values())
            made = self.run(step.call.method, given_input)
            if step.made is not None:
                ids[f"{step.made.kind}:{step.made.name}"] = made
                row = NameRow(step.made.kind, step.made.name, made, step.made.life)
                self.names[row.kind, row.name] = row

    def run(self, method: str, given_input: dict[str, Any]) -> str:
        given_input = dict(given_input)
        assert given_input.pop("tenantId") == "root"
        if key := given_input.pop("idempotencyKey", None):
            assert key not in self.keys, f"{key} was used before"
            self.keys.add(key)
        ran: str = getattr(self, method.replace(".", "_"))(**given_input)
        return ran

    def sites_create(self, **values: Any) -> str:
        self.sites[ident := f"site_{len(self.sites)}"] = values
        return ident

    def pools_create(self, *, siteId: str, ownerQuota: Mapping[str, int] | None = None, **values: Any) -> str:  # noqa: N803  # the call's own names
        assert siteId in self.sites
        ident = f"pool_{len(self.pools)}"
        self.pools[ident] = {"site": siteId, "sharing": "exclusive", "agent": "bcd", "policy": {}, **values}
        for resource, amount in (ownerQuota or {}).items():
            self.quotas[ident, resource] = amount
        return ident

    def pools_update(self, *, poolId: str, **changed: Any) -> str:  # noqa: N803
        assert set(changed) <= {"policy", "gpuModel"}
        assert changed
        self.pools[poolId].update(changed)
        return poolId

    def pools_archive(self, *, poolId: str) -> str:  # noqa: N803
        assert not self.pools[poolId].get("archived")
        self.pools[poolId]["archived"] = True
        return poolId

    def pools_offer(self, *, poolId: str, toTenantId: str, **values: Any) -> str:  # noqa: N803
        assert toTenantId != "root"
        assert not self.pools[poolId].get("archived")
        self.offers[poolId, toTenantId] = values
        if self.pools[poolId]["policy"].get("singleTenant"):
            assert len([pool for pool, _ in self.offers if pool == poolId]) == 1
        return poolId

    def pools_unoffer(self, *, poolId: str, toTenantId: str) -> str:  # noqa: N803
        del self.offers[poolId, toTenantId]
        return poolId

    def quotas_set(self, *, poolId: str, resource: str, max: int) -> str:  # noqa: A002, N803
        assert poolId in self.pools
        self.quotas[poolId, resource] = max
        return poolId

    def flavors_create(self, *, poolId: str, name: str, **values: Any) -> str:  # noqa: N803
        assert (poolId, name) not in self.flavors
        assert not self.pools[poolId].get("archived")
        self.flavors[poolId, name] = {"archived": False, **values}
        return f"flv_{name}"

    def flavors_update(self, *, poolId: str, name: str, **values: Any) -> str:  # noqa: N803
        kept = self.flavors[poolId, name].get("offerId")
        self.flavors[poolId, name] = {"archived": False, "offerId": kept, **values}
        return f"flv_{name}"

    def flavors_delete(self, *, poolId: str, name: str) -> str:  # noqa: N803
        if self.used_flavors:
            self.flavors[poolId, name]["archived"] = True
        else:
            del self.flavors[poolId, name]
        return poolId


QUOTA = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 3))
POLICY = st.fixed_dictionaries(
    {},
    optional={
        "placement": st.sampled_from(["spread", "pack"]),
        "disruptionBudget": st.sampled_from([0, 0.1, 0.5, 1]),
        "overcommit": st.dictionaries(st.sampled_from(["vcpu", "memoryGiB"]), st.sampled_from([1, 1.0, 1.5, 2])),
        "singleTenant": st.booleans(),
    },
)


def items(item: st.SearchStrategy[dict[str, Any]], *key: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(item, max_size=4, unique_by=lambda one: tuple(one[part] for part in key))


SITES = items(
    st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES), "kind": st.just("shared"), "region": st.sampled_from(["eu", "us"])},
        optional={"iamRegion": st.just("eu-1")},
    ),
    "name",
)
OFFERS = items(
    st.fixed_dictionaries(
        {"tenant": st.sampled_from(TENANTS)},
        optional={"quota": QUOTA, "priority": st.integers(-1, 1), "includeDescendants": st.booleans()},
    ),
    "tenant",
)
POOLS = items(
    st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES), "site": st.sampled_from(NAMES), "class": st.just("vps-host")},
        optional={
            "gpuModel": st.sampled_from(["L40S", "H100"]),
            "sharing": st.sampled_from(["exclusive", "mig", "mps"]),
            "agent": st.sampled_from(["bcd", "none"]),
            "policy": POLICY,
            "ownerQuota": QUOTA,
            "offers": OFFERS,
        },
    ),
    "name",
)
FLAVORS = items(
    st.fixed_dictionaries(
        {
            "pool": st.sampled_from(NAMES),
            "name": st.sampled_from(["g1", "g2"]),
            "vcpu": st.integers(1, 2),
            "memoryGiB": st.just(4),
            "diskGiB": st.just(40),
        },
        optional={
            "gpus": st.integers(0, 1),
            "placement": st.fixed_dictionaries({}, optional={"pinned": st.booleans(), "numaAffine": st.booleans()}),
        },
    ),
    "pool",
    "name",
)
DOCUMENTS = st.fixed_dictionaries(
    {"version": st.just(1)}, optional={"sites": SITES, "pools": POOLS, "flavors": FLAVORS}
)
OPTIONS = st.builds(Options, prune=st.booleans(), allow_empty=st.booleans())


def plan_of(model: Model, document: dict[str, Any], options: Options) -> Plan:
    return make_plan(Fleet(KINDS, read_document(KINDS, document), model.snapshot()), options)


def unblocked(document: dict[str, Any], model: Model) -> dict[str, Any]:
    """The document without the items that are blocked, so that something is left to apply."""
    for _ in range(10):
        plan = plan_of(model, document, Options())
        blocked = {(change.kind, change.name) for change in plan.blocked}
        if not blocked:
            return document
        pools = [item for item in document.get("pools", []) if ("pool", item["name"]) not in blocked]
        document = {
            **document,
            "sites": [item for item in document.get("sites", []) if ("site", item["name"]) not in blocked],
            "pools": [
                {
                    **item,
                    "offers": [
                        offer
                        for offer in item.get("offers", [])
                        if ("offer", f"{item['name']} -> {offer['tenant']}") not in blocked
                    ],
                }
                for item in pools
            ],
            "flavors": [
                item
                for item in document.get("flavors", [])
                if ("flavor", f"{item['pool']}/{item['name']}") not in blocked
            ],
        }
    raise AssertionError(f"still blocked: {plan_of(model, document, Options()).blocked}")


def grown(documents: list[dict[str, Any]], *, used_flavors: bool) -> Model:
    """A fleet that some documents were applied to, one after the other."""
    model = Model(used_flavors=used_flavors)
    for document in documents:
        model.apply(plan_of(model, unblocked(document, model), Options()))
    return model


FLEETS = st.builds(grown, st.lists(DOCUMENTS, max_size=3), used_flavors=st.booleans())


@DEADLINE_FREE
@given(FLEETS, DOCUMENTS, OPTIONS)
def test_after_an_apply_nothing_is_left_to_do(model: Model, document: dict[str, Any], options: Options) -> None:
    document = unblocked(document, model)
    plan = plan_of(model, document, options)
    if plan.blocked:
        return
    model.apply(plan)
    again = plan_of(model, document, options)
    assert not again.steps
    assert not again.blocked
    assert {change.action for change in again.changes} <= {"unchanged"}


@DEADLINE_FREE
@given(FLEETS, st.booleans())
def test_an_exported_fleet_plans_empty(model: Model, prune: bool) -> None:  # noqa: FBT001  # hypothesis passes it by position
    exported = write_document(Fleet(KINDS, EMPTY, model.snapshot()))
    plan = plan_of(model, exported.config, Options(prune=prune))
    assert not plan.steps
    assert not plan.blocked
    assert exported.missing == ["providerAccounts", "sandboxTemplates"]


@DEADLINE_FREE
@given(FLEETS, DOCUMENTS, OPTIONS, st.randoms(use_true_random=False))
def test_the_order_of_lists_and_keys_means_nothing(
    model: Model, document: dict[str, Any], options: Options, chance: random.Random
) -> None:
    one = plan_of(model, document, options)
    other = plan_of(model, shuffled(document, chance), options)
    assert one.plan_hash == other.plan_hash
    assert one.changes == other.changes
    assert drift_hash(one) == drift_hash(other)


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        entries = [(name, shuffled(item, chance)) for name, item in value.items()]
        chance.shuffle(entries)
        return dict(entries)
    if isinstance(value, list):
        entries = [shuffled(item, chance) for item in value]
        chance.shuffle(entries)
        return entries
    return value


@DEADLINE_FREE
@given(FLEETS, DOCUMENTS, OPTIONS)
def test_every_item_has_one_change_and_counts_agree(model: Model, document: dict[str, Any], options: Options) -> None:
    plan = plan_of(model, document, options)
    named = [(change.kind, change.name) for change in plan.changes]
    assert len(named) == len(set(named))
    view = plan.view()
    summary = view.summary
    assert summary.create + summary.update + summary.delete + summary.unchanged == len(named)
    assert view.blocked == any(change.blocked for change in view.changes)
    for change in view.changes:
        assert (change.fields is not None) == (change.action == "update")


@DEADLINE_FREE
@given(FLEETS, DOCUMENTS)
def test_without_prune_nothing_is_deleted(model: Model, document: dict[str, Any]) -> None:
    plan = plan_of(model, document, Options(prune=False, allow_empty=True))
    assert all(change.action != "delete" for change in plan.changes)


@DEADLINE_FREE
@given(FLEETS, DOCUMENTS, OPTIONS)
def test_calls_stand_in_the_order_of_the_seed(model: Model, document: dict[str, Any], options: Options) -> None:
    order = [
        ("site", "create"),
        ("pool", "create"),
        ("pool", "update"),
        ("ownerQuota", "create"),
        ("ownerQuota", "update"),
        ("offer", "create"),
        ("offer", "update"),
        ("flavor", "create"),
        ("flavor", "update"),
        ("flavor", "delete"),
        ("offer", "delete"),
        ("pool", "delete"),
    ]
    steps = [order.index((step.change.kind, step.change.action)) for step in plan_of(model, document, options).steps]
    assert steps == sorted(steps)


@DEADLINE_FREE
@given(FLEETS, DOCUMENTS)
def test_what_a_plan_shows_is_json(model: Model, document: dict[str, Any]) -> None:
    for call in plan_of(model, document, Options(prune=True)).view().calls:
        assert call.input == written(call.input)
