"""Sandbox templates in a FleetConfig: planned and applied for real, and against random documents in memory."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from better_compute.base.errors import ErrorCode
from better_compute.base.items import Live, NewRef, Opaque, digest_of
from better_compute.builtin import fleet_module, vps
from better_compute.db.query import Query
from better_compute.modules.flavors.kind import FLAVOR
from better_compute.modules.fleet.rules.document import read_document, recorded_document
from better_compute.modules.fleet.rules.export import write_document
from better_compute.modules.fleet.rules.fleet import EMPTY, Fleet, Snapshot
from better_compute.modules.fleet.rules.names import NameRow, Names
from better_compute.modules.fleet.rules.order import ordered_kinds
from better_compute.modules.fleet.rules.plan import Options, Plan, make_plan
from better_compute.modules.pools.kind import POOL
from better_compute.modules.sandboxes.kind import SANDBOX_TEMPLATE
from better_compute.modules.sandboxes.rules.blocks import Surroundings
from better_compute.modules.sandboxes.rules.templates import (
    PoolFacts,
    is_reference,
    settled_mounts,
    settled_ttls,
    settled_warm,
    shown_user_data,
)
from better_compute.modules.sites.kind import SITE
from better_compute.testing.harness import Harness, harness, refused

RECORDED = Query(
    name="tests.sandboxes.recorded",
    sql="select document::text from fleet_applied where tenant_id = %(tenant_id)s",
    row=str,
)
CANARY = "canary-77c1"
TEXT = f"#cloud-config\npassword: {CANARY}"


@dataclass
class World:
    """A deployment with two images, two secrets' references and a document of root's."""

    h: Harness
    secret: str
    other_secret: str

    def document(self, *templates: Mapping[str, Any], **lists: Any) -> dict[str, Any]:
        shape = {"vcpu": 2, "memoryGiB": 4, "diskGiB": 40}
        return {
            "version": 1,
            "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
            "pools": [{"name": "vps-fra", "site": "fra", "class": "vps-host", "policy": {"runtime": "libvirt-kvm"}}],
            "flavors": [{"pool": "vps-fra", "name": name, **shape} for name in ("g1.small", "g1.large")],
            "sandboxTemplates": list(templates),
            **lists,
        }

    def template(self, **fields: Any) -> dict[str, Any]:
        base = {"name": "py-small", "pool": "vps-fra", "flavor": "g1.small", "imageId": "ubuntu-24.04"}
        return {**base, **fields}

    async def plan(self, document: Mapping[str, Any], **options: Any) -> Any:
        return await self.h.call("fleet.plan", tenant_id="root", config=document, **options)

    async def apply(self, document: Mapping[str, Any], **options: Any) -> list[str]:
        done = await self.h.call("fleet.apply", tenant_id="root", config=document, **options)
        return [call.method for call in done.plan.calls]

    async def assert_settled(self, document: Mapping[str, Any]) -> None:
        planned = await self.plan(document, prune=True)
        assert (planned.calls, planned.blocked) == ([], False)
        exported = await self.h.call("fleet.export", tenant_id="root")
        planned = await self.plan(exported.config, prune=True)
        assert (planned.calls, planned.blocked) == ([], False)

    async def volume(self, name: str) -> Any:
        return await self.h.call("sandboxVolumes.create", tenant_id="root", name=name, size_gib=10)

    async def block(self, **fields: Any) -> str:
        """Why a document with this template is blocked."""
        return await self.why(self.document(self.template(**fields)))

    async def why(self, document: Mapping[str, Any], **options: Any) -> str:
        planned = await self.plan(document, **options)
        (change,) = [one for one in planned.changes if one.blocked is not None]
        assert change.kind == "sandboxTemplate"
        return str(change.blocked)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with harness(*vps(), fleet_module()) as h:
        for name, needs in (("ubuntu-24.04", 10), ("huge", 100)):
            await h.call(
                "images.create",
                tenant_id="root",
                name=name,
                format="qcow2",
                min_disk_gib=needs,
                source={"url": "https://images.example.com/one.qcow2", "sha256": "0" * 64},
            )
        made = [await h.call("secrets.create", tenant_id="root", name=name, value="v") for name in ("pip", "cloud")]
        yield World(h, *[f"secret://root/{one.id}" for one in made])


async def test_a_whole_template_is_applied_and_then_plans_empty(world: World) -> None:
    await world.apply(world.document())
    for name in ("data", "cache"):
        await world.volume(name)
    mounts: list[dict[str, Any]] = [
        {"volume": "data", "mountPath": "/data"},
        {"volume": "cache", "mountPath": "/var/cache", "readOnly": True},
    ]
    whole = world.template(
        runtime="libvirt-kvm",
        userData=world.other_secret,
        defaultTtlSeconds=600,
        maxTtlSeconds=7200,
        warm={"min": 2, "max": 4},
        env={"PIP_INDEX_URL": world.secret},
        network="private",
        volumes=mounts,
    )
    document = world.document(whole)
    assert (await world.apply(document))[-1] == "sandboxTemplates.create"
    await world.assert_settled(document)
    (made,) = (await world.h.call("sandboxTemplates.list", tenant_id="root")).items
    assert (made.name, made.warm.max, made.env, made.network) == ("py-small", 4, whole["env"], "private")
    assert [one.volume for one in made.volumes] == ["data", "cache"]
    exported = await world.h.call("fleet.export", tenant_id="root")
    assert exported.missing == ["providerAccounts"] or not exported.missing
    assert exported.config["sandboxTemplates"] == [{**whole, "volumes": [{**mounts[0], "readOnly": False}, mounts[1]]}]


async def test_a_template_is_created_with_its_pool_and_flavor_in_one_apply(world: World) -> None:
    document = world.document(world.template(env={"A": world.secret}))
    planned = await world.plan(document)
    assert [call.method for call in planned.calls][-3:] == ["flavors.create"] * 2 + ["sandboxTemplates.create"]
    assert planned.calls[-1].input["poolId"] == "pool:vps-fra"
    await world.apply(document, plan_hash=planned.plan_hash)
    await world.assert_settled(document)


async def test_what_the_server_filled_in_is_no_drift(world: World) -> None:
    document = world.document(world.template())
    await world.apply(document)
    await world.assert_settled(document)
    changed = world.document(world.template(warm={"min": 1}, network="none"))
    planned = await world.plan(changed)
    (update,) = planned.calls
    assert update.method == "sandboxTemplates.update"
    assert set(update.input) == {"tenantId", "templateId", "warm", "network"}
    await world.apply(changed)
    await world.assert_settled(changed)


async def test_volumes_are_compared_in_order_and_env_as_a_whole(world: World) -> None:
    await world.apply(world.document())
    for name in ("a", "b"):
        await world.volume(name)
    mounts = [{"volume": "a", "mountPath": "/a"}, {"volume": "b", "mountPath": "/b", "readOnly": False}]
    first = world.document(world.template(volumes=mounts, env={"A": world.secret, "B": world.secret}))
    await world.apply(first)
    turned = world.document(world.template(volumes=mounts[::-1], env={"B": world.secret, "A": world.secret}))
    (change,) = [one for one in (await world.plan(turned)).changes if one.action == "update"]
    assert change.fields == ["volumes"]
    await world.apply(turned)
    fewer = world.document(world.template(volumes=[], env={"A": world.secret}))
    await world.apply(fewer)
    await world.assert_settled(fewer)
    (made,) = (await world.h.call("sandboxTemplates.list", tenant_id="root")).items
    assert (made.volumes, made.env) == ([], {"A": world.secret})


async def test_user_data_is_nowhere_in_clear(world: World) -> None:
    document = world.document(world.template(userData=TEXT))
    planned = await world.plan(document)
    assert CANARY not in repr(planned)
    await world.apply(document, plan_hash=planned.plan_hash)
    await world.assert_settled(document)
    exported = await world.h.call("fleet.export", tenant_id="root")
    assert exported.config["sandboxTemplates"][0]["userData"] == digest_of(TEXT)
    recorded = str(await world.h.database.statement(RECORDED, tenant_id="root"))
    assert CANARY not in recorded
    assert digest_of(TEXT) in recorded
    await world.h.app.worker.run_once("fleet.drift", "tenant:root")
    assert (await world.h.call("fleet.status", tenant_id="root")).drift is None
    (made,) = (await world.h.call("sandboxTemplates.list", tenant_id="root")).items
    await world.h.call("sandboxTemplates.update", tenant_id="root", template_id=made.id, user_data="other")
    await world.h.app.worker.run_once("fleet.drift", "tenant:root")
    drift = (await world.h.call("fleet.status", tenant_id="root")).drift
    assert drift.changes[0].fields == ["userData"]
    assert drift.blocked


async def test_user_data_is_removed_by_null_alone(world: World) -> None:
    await world.apply(world.document(world.template(userData=TEXT)))
    await world.assert_settled(world.document(world.template()))
    without = world.document(world.template(userData=None))
    assert await world.apply(without) == ["sandboxTemplates.update"]
    await world.assert_settled(without)


async def test_templates_go_before_their_flavors(world: World) -> None:
    await world.apply(world.document(world.template()))
    rest = world.document(flavors=[])
    assert await world.apply(rest, prune=True, allow_empty=True) == [
        "sandboxTemplates.delete",
        "flavors.delete",
        "flavors.delete",
    ]


async def test_a_template_comes_back_under_its_name(world: World) -> None:
    document = world.document(world.template())
    await world.apply(document)
    await world.apply(world.document(), prune=True, allow_empty=True)
    await world.apply(document)
    await world.assert_settled(document)


async def test_what_is_unknown_blocks_with_a_reason(world: World) -> None:
    await world.apply(world.document())
    assert "no pool elsewhere" in await world.block(pool="elsewhere")
    assert "no flavor g9" in await world.block(flavor="g9")
    assert "no image debian" in await world.block(imageId="debian")
    assert "no sandbox volume data" in await world.block(volumes=[{"volume": "data", "mountPath": "/data"}])
    gone = "secret://root/sec_01k00000000000000000000000"
    assert "env.A names a secret that is not there" in await world.block(env={"A": gone})
    assert "userData names a secret" in await world.block(userData=gone)
    assert "another tenant" in await world.block(env={"A": world.secret.replace("root", "acme")})
    assert "must be the pool's" in await world.block(runtime="docker")
    assert "needs 100 GiB" in await world.block(imageId="huge")
    assert "is above maxTtlSeconds" in await world.block(defaultTtlSeconds=600, maxTtlSeconds=60)
    assert "is the digest of a text" in await world.block(userData=digest_of("unknown"))


async def test_a_flavor_that_leaves_under_a_template_blocks_it(world: World) -> None:
    await world.apply(world.document(world.template()))
    shape = {"vcpu": 2, "memoryGiB": 4, "diskGiB": 40}
    left = world.document(world.template(), flavors=[{"pool": "vps-fra", "name": "g1.large", **shape}])
    assert "deleted by the same plan" in await world.why(left, prune=True)
    moved = world.document(world.template(flavor="g1.large"), flavors=left["flavors"])
    await world.apply(moved, prune=True)
    await world.assert_settled(moved)


async def test_pool_and_runtime_cannot_change(world: World) -> None:
    await world.apply(world.document(world.template()))
    assert "runtime of a sandbox template cannot change" in await world.block(runtime="docker")


async def test_what_went_since_is_no_difference(world: World) -> None:
    document = world.document(world.template())
    await world.apply(document)
    (pool,) = (await world.h.call("pools.list", tenant_id="root")).items
    await world.h.call("flavors.delete", tenant_id="root", pool_id=pool.id, name="g1.small")
    exported = await world.h.call("fleet.export", tenant_id="root")
    planned = await world.plan(exported.config, prune=True)
    assert (planned.calls, planned.blocked) == ([], False)
    await world.h.call("pools.archive", tenant_id="root", pool_id=pool.id)
    exported = await world.h.call("fleet.export", tenant_id="root")
    assert exported.config["sandboxTemplates"][0]["pool"] == pool.id
    planned = await world.plan(exported.config, prune=True)
    assert (planned.calls, planned.blocked) == ([], False)


async def test_an_offered_pool_is_named_by_its_id(world: World) -> None:
    h = world.h
    h.iam.grants["svc_root"] = ["*"]
    site = await h.call("sites.create", as_="acme", tenant_id="acme", kind="custom", region="eu")
    pool = await h.call("pools.create", as_="acme", tenant_id="acme", site_id=site.id, class_="vps-host")
    await h.call(
        "flavors.create", as_="acme", tenant_id="acme", pool_id=pool.id, name="own", vcpu=1, memory_gib=1, disk_gib=20
    )
    document = world.document(world.template(pool=pool.id, flavor="own"))
    assert "no pool pool_" in await world.why(document)
    await h.call("pools.offer", as_="acme", tenant_id="acme", pool_id=pool.id, to_tenant_id="root", quota={})
    assert "no flavor none" in await world.why(world.document(world.template(pool=pool.id, flavor="none")))
    await world.apply(document)
    await world.assert_settled(document)
    exported = await h.call("fleet.export", tenant_id="root")
    assert exported.config["sandboxTemplates"][0]["pool"] == pool.id


async def test_malformed_templates_are_refused_with_their_path(world: World) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"volumes": [{"volume": f"v{n}", "mountPath": f"/{n}"} for n in range(9)]}, "volumes"),
        ({"volumes": [{"volume": "a", "mountPath": "a"}]}, "volumes[0].mountPath"),
        ({"env": {"A": CANARY}}, "env.A"),
        ({"env": {"a": world.secret}}, "env.a"),
        ({"warm": {"min": 2, "max": 1}}, "warm"),
        ({"warm": None}, "warm"),
        ({"defaultTtlSeconds": 1}, "defaultTtlSeconds"),
        ({"userData": "x" * 40_000}, "userData"),
        ({"placement": {}}, "placement"),
    ]
    for fields, path in cases:
        with refused(ErrorCode.INVALID_INPUT, path=f"config.sandboxTemplates[0].{path}") as refusal:
            await world.plan(world.document(world.template(**fields)))
        assert CANARY not in json.dumps([refusal[0].message, refusal[0].details])
    with refused(ErrorCode.INVALID_INPUT, path="config.sandboxTemplates[1].name"):
        await world.plan(world.document(world.template(), world.template()))


async def test_each_volume_is_decided_when_the_apply_checks_the_call(world: World) -> None:
    await world.apply(world.document())
    volume = await world.volume("data")
    document = world.document(world.template(volumes=[{"volume": "data", "mountPath": "/data"}]))
    world.h.iam.denials["svc_root"] = [f"compute:sandboxes:manage compute-sandbox-volume/{volume.id}"]
    with refused(ErrorCode.ACCESS_DENIED):
        await world.apply(document)
    assert (await world.h.call("sandboxTemplates.list", as_="admin", tenant_id="root")).items == []
    world.h.iam.denials.clear()
    await world.apply(document)
    await world.assert_settled(document)


async def test_a_deployment_without_sandboxes_says_so() -> None:
    async with harness(*vps(sandboxes=False), fleet_module()) as h:
        document = {"version": 1, "sandboxTemplates": [{"name": "py", "pool": "p", "flavor": "f", "imageId": "i"}]}
        planned = await h.call("fleet.plan", tenant_id="root", config=document)
        assert planned.changes[0].blocked == "this deployment does not run sandboxes (vps v0.5)"
        assert "sandboxTemplates" in (await h.call("fleet.export", tenant_id="root")).missing


KINDS = ordered_kinds([kind.items for kind in (SITE, POOL, FLAVOR, SANDBOX_TEMPLATE)])
SECRETS = tuple(f"secret://root/sec_01k000000000000000000000{n:02}" for n in (1, 2))
AROUND = Surroundings(
    images={"debian": 10, "huge": 1000},
    volumes={"data": "pool_0", "cache": None, "far": "pool_lent"},
    secrets=frozenset(secret.rpartition("/")[2] for secret in SECRETS),
    pools={"pool_lent": PoolFacts("pool_lent", "vps-host", archived=False, runtime=None)},
    flavors={("pool_lent", "f"): 50},
)
FLEET: dict[str, Any] = {
    "version": 1,
    "sites": [{"name": "s", "kind": "shared", "region": "eu"}],
    "pools": [{"name": "p", "site": "s", "class": "vps-host", "policy": {"runtime": "kvm"}}],
    "flavors": [{"pool": "p", "name": name, "vcpu": 1, "memoryGiB": 1, "diskGiB": 50} for name in ("f", "g")],
}


@dataclass
class Model:
    """Templates in memory, and what the calls about them do; it knows nothing about plans."""

    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        shape = {"vcpu": 1, "memoryGiB": 1, "diskGiB": 50, "gpus": 0}
        pool = {"site": "site_0", "class": "vps-host", "sharing": "exclusive", "agent": "bcd"}
        return Snapshot(
            tenant_id="root",
            live={
                "site": [Live(ident="site_0", values={"kind": "shared", "region": "eu"})],
                "pool": [Live(ident="pool_0", values={**pool, "policy": {"runtime": "kvm"}})],
                "flavor": [Live(f"flv_{name}", name, "pool_0", values=shape) for name in ("f", "g")],
                "sandboxTemplate": [
                    Live(ident=f"stpl_{name}", name=name, values=values) for name, values in self.templates.items()
                ],
            },
            names=Names(
                [NameRow("site", "s", "site_0", 1), NameRow("pool", "p", "pool_0", 1)]
                + [NameRow("sandboxTemplate", name, f"stpl_{name}", lives) for name, lives in self.lives.items()]
            ),
            facts={"sandboxTemplate": AROUND},
            outside={"site": "root"},
        )

    def plan(self, document: Mapping[str, Any], *, prune: bool = False) -> Plan:
        read = read_document(KINDS, document)
        return make_plan(Fleet(KINDS, read, self.snapshot()), Options(prune=prune, allow_empty=True))

    def apply(self, plan: Plan) -> None:
        for step in plan.steps:
            assert step.call is not None
            fields = {name: _clear(value) for name, value in step.call.input.items()}
            assert fields.pop("tenantId") == "root"
            getattr(self, step.call.method.replace(".", "_"))(fields)

    def sandboxTemplates_create(self, fields: dict[str, Any]) -> None:  # noqa: N802  # the call's own name
        name = fields.pop("name")
        assert name not in self.templates
        assert fields.pop("idempotencyKey").startswith("fleet:root:sandboxTemplate:")
        self.lives[name] = self.lives.get(name, 0) + 1
        assert fields.pop("runtime", "kvm") == "kvm"
        pool = fields.pop("poolId")
        base = {"pool": pool, "runtime": "kvm" if pool == "pool_0" else None, "env": {}, "network": "egress"}
        self.templates[name] = {**base, "warm": {"min": 0, "max": 0}, "volumes": [], "userData": None}
        self._put(self.templates[name], fields)

    def sandboxTemplates_update(self, fields: dict[str, Any]) -> None:  # noqa: N802
        template = self.templates[fields.pop("templateId").removeprefix("stpl_")]
        assert fields
        assert not {"poolId", "runtime"} & set(fields)
        self._put(template, fields)

    def sandboxTemplates_delete(self, fields: dict[str, Any]) -> None:  # noqa: N802
        del self.templates[fields["templateId"].removeprefix("stpl_")]

    def _put(self, template: dict[str, Any], fields: dict[str, Any]) -> None:
        template.update(fields)
        if template["userData"] is not None and not template["userData"].startswith("sha256:"):
            template["userData"] = shown_user_data(template["userData"])
        template["warm"] = settled_warm(template["warm"])
        template["volumes"] = settled_mounts(template["volumes"])
        lives = settled_ttls(template.get("defaultTtlSeconds"), template.get("maxTtlSeconds"))
        template["defaultTtlSeconds"], template["maxTtlSeconds"] = lives
        assert all(AROUND.volumes[mount["volume"]] in {None, template["pool"]} for mount in template["volumes"])
        assert AROUND.images[template["imageId"]] <= 50


def _clear(value: Any) -> Any:
    """A planned value as the call gets it."""
    assert not isinstance(value, NewRef)
    if isinstance(value, Opaque):
        assert value.text is not None
        return value.text
    return value


MOUNT = st.fixed_dictionaries(
    {"volume": st.sampled_from(["data", "cache", "far", "none"]), "mountPath": st.sampled_from(["/a", "/b", "/c"])},
    optional={"readOnly": st.booleans()},
)
TEMPLATES: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["a", "b", "c"]),
            "pool": st.sampled_from(["p", "p", "pool_lent", "nowhere"]),
            "flavor": st.sampled_from(["f", "f", "g", "none"]),
            "imageId": st.sampled_from(["debian", "debian", "debian", "huge", "none"]),
        },
        optional={
            "runtime": st.sampled_from(["kvm", "other"]),
            "userData": st.sampled_from(["one", "two", SECRETS[0], None, digest_of("one"), digest_of("three")]),
            "defaultTtlSeconds": st.sampled_from([60, 600, 100_000]),
            "maxTtlSeconds": st.sampled_from([60, 600, 100_000]),
            "warm": st.fixed_dictionaries({"min": st.integers(0, 1)}, optional={"max": st.integers(1, 2)}),
            "env": st.dictionaries(st.sampled_from(["A", "B"]), st.sampled_from(SECRETS)),
            "network": st.sampled_from(["egress", "private", "none"]),
            "volumes": st.lists(
                MOUNT, max_size=3, unique_by=(lambda mount: mount["volume"], lambda mount: mount["mountPath"])
            ),
        },
    ),
    max_size=3,
    unique_by=lambda template: str(template["name"]),
)
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def passing(model: Model, templates: list[dict[str, Any]]) -> dict[str, Any]:
    """The document without what is blocked."""
    document = {**FLEET, "sandboxTemplates": templates}
    blocked = {change.name for change in model.plan(document).changes if change.blocked is not None}
    return {**FLEET, "sandboxTemplates": [one for one in templates if one["name"] not in blocked]}


@CALM
@given(first=TEMPLATES, second=TEMPLATES, prune=st.booleans())
def test_applying_any_documents_leaves_nothing_to_do(*, first: Any, second: Any, prune: bool) -> None:
    model = Model()
    for templates in (first, second):
        document = passing(model, templates)
        model.apply(model.plan(document, prune=prune))
        again = model.plan(document, prune=prune)
        assert (again.steps, again.blocked) == ((), ())
        recorded = model.plan(recorded_document(KINDS, document), prune=prune)
        assert (recorded.steps, recorded.blocked) == ((), ())
        exported = write_document(Fleet(KINDS, EMPTY, model.snapshot())).config
        same = model.plan(exported, prune=True)
        assert (same.steps, same.blocked) == ((), ())


@CALM
@given(TEMPLATES, st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order_of_lists_and_keys(templates: Any, order: Any) -> None:
    model = Model()
    shuffled = [dict(order.sample(list(one.items()), len(one))) for one in order.sample(templates, len(templates))]
    plan = model.plan({**FLEET, "sandboxTemplates": templates})
    assert model.plan({**FLEET, "sandboxTemplates": shuffled}).plan_hash == plan.plan_hash


@CALM
@given(TEMPLATES)
def test_no_plan_shows_a_text(templates: Any) -> None:
    for one in templates:
        if one.get("userData") in {"one", "two"}:
            one["userData"] += CANARY
    document = {**FLEET, "sandboxTemplates": templates}
    assert CANARY not in repr(Model().plan(document).view())
    assert CANARY not in json.dumps(recorded_document(KINDS, document))
    assert all(not is_reference(one["userData"]) for one in templates if CANARY in str(one.get("userData")))
