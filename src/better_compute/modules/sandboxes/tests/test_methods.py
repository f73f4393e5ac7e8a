"""Templates and volumes through the envelope, on a real database."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.items import digest_of
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.kernel.iam import Check, Decision
from better_compute.kernel.principal import Caller
from better_compute.modules.sandboxes.rules.templates import VOLUME
from better_compute.testing.fakes import FakeIam
from better_compute.testing.harness import Harness, harness, refused

SEALED = Query(
    name="tests.sandboxes.sealed",
    sql="select user_data from sandbox_templates where tenant_id = %(tenant_id)s and id = %(id)s",
    row=str,
)
DENIED = Query(
    name="tests.sandboxes.denied",
    sql="select action || ' ' || resource from audit where tenant_id = %(tenant_id)s and outcome = 'deny'",
    row=str,
)
EVENTS = Query(
    name="tests.sandboxes.events",
    sql="""select type || ' ' || coalesce(data ->> 'fields', '') from events
           where tenant_id = %(tenant_id)s and subject like 'sandbox-%%' order by seq""",
    row=str,
)
EVERYTHING = Query(
    name="tests.sandboxes.everything",
    sql="""select string_agg(line, ' ') from (
             select t::text as line from sandbox_templates t union all select e::text from events e
             union all select a::text from audit a union all select p::text from projection p
             union all select i::text from idempotency i) lines""",
    row=str,
    crosses_tenants="a test looks for something everywhere",
)
CANARY = "canary-5f2a9"


@dataclass
class RestlessIam(FakeIam):
    """Deletes the volume `data` and makes it again while the call that names it is decided, as often as told."""

    moves: int = 0
    world: list["World"] = field(default_factory=list)

    async def decide_many(self, caller: Caller, checks: Sequence[Check]) -> list[Decision]:
        if any(check.resource.type == VOLUME for check in checks) and self.moves:
            self.moves -= 1
            (world,) = self.world
            ident = checks[0].resource.id
            await world.call("sandboxVolumes.delete", volume_id=ident)
            await world.volume("data")
        return await super().decide_many(caller, checks)


@dataclass
class World:
    """A pool of root's with two flavors, offered to acme, and an image; calls are acme's."""

    h: Harness
    pool_id: str

    async def call(self, method: str, *, as_: str = "acme", **fields: Any) -> Any:
        return await self.h.call(method, as_=as_, **{"tenant_id": "acme", **fields})

    async def create(self, name: str = "py", **fields: Any) -> Any:
        given = {"pool_id": self.pool_id, "flavor": "small", "image_id": "debian", **fields}
        return await self.call("sandboxTemplates.create", name=name, **given)

    async def update(self, template: Any, **fields: Any) -> Any:
        return await self.call("sandboxTemplates.update", template_id=template.id, **fields)

    async def volume(self, name: str, **fields: Any) -> Any:
        return await self.call(
            "sandboxVolumes.create", **{"name": name, "pool_id": self.pool_id, "size_gib": 10, **fields}
        )

    async def secret(self, name: str) -> str:
        made = await self.call("secrets.create", name=name, value="a value")
        return f"secret://acme/{made.id}"


async def furnish(h: Harness) -> World:
    site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
    pool = await h.call(
        "pools.create", tenant_id="root", site_id=site.id, class_="vps-host", policy={"runtime": "libvirt-kvm"}
    )
    for name, disk in (("small", 20), ("tiny", 5)):
        await h.call(
            "flavors.create", tenant_id="root", pool_id=pool.id, name=name, vcpu=1, memory_gib=2, disk_gib=disk
        )
    for name, needs in (("debian", 10), ("big", 20)):
        await h.call(
            "images.create",
            tenant_id="root",
            name=name,
            public=True,
            format="qcow2",
            min_disk_gib=needs,
            source={"url": "https://images.example.com/one.qcow2", "sha256": "0" * 64},
        )
    await h.call("pools.offer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme", quota={"vcpu": 4})
    return World(h, pool.id)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with harness(*vps()) as h:
        yield await furnish(h)


async def test_the_server_fills_in_what_is_left_out(world: World) -> None:
    made = await world.create()
    assert made.id.startswith("stpl_")
    assert (made.default_ttl_seconds, made.max_ttl_seconds) == (3600, 86_400)
    assert (made.warm.min, made.warm.max, made.env, made.network, made.volumes) == (0, 0, {}, "egress", [])
    assert (made.runtime, made.user_data, made.version, made.image_id) == ("libvirt-kvm", None, 1, "debian")
    assert await world.call("sandboxTemplates.get", template_id=made.id) == made
    assert (await world.call("sandboxTemplates.list")).items == [made]


async def test_lives_are_filled_in_so_that_they_fit(world: World) -> None:
    cases: list[tuple[dict[str, int], tuple[int, int]]] = [
        ({"default_ttl_seconds": 60}, (60, 86_400)),
        ({"max_ttl_seconds": 600}, (600, 600)),
        ({"default_ttl_seconds": 100_000}, (100_000, 100_000)),
        ({"default_ttl_seconds": 2_592_000, "max_ttl_seconds": 2_592_000}, (2_592_000, 2_592_000)),
    ]
    for turn, (given, lives) in enumerate(cases):
        made = await world.create(f"t{turn}", **given)
        assert (made.default_ttl_seconds, made.max_ttl_seconds) == lives


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"defaultTtlSeconds": 59}, "defaultTtlSeconds"),
    ({"maxTtlSeconds": 2_592_001}, "maxTtlSeconds"),
    ({"defaultTtlSeconds": 600, "maxTtlSeconds": 60}, "defaultTtlSeconds"),
    ({"warm": {"min": 65}}, "warm.min"),
    ({"warm": {"min": 3, "max": 2}}, "warm"),
    ({"warm": {"min": 0, "max": 65}}, "warm.max"),
    ({"env": {"lower": "secret://acme/sec_01k00000000000000000000000"}}, "env.lower"),
    ({"env": {"A": f"{CANARY}"}}, "env.A"),
    ({"env": {"A": "secret://by-name"}}, "env.A"),
    ({"env": {"A": "env://HOME"}}, "env.A"),
    ({"userData": "x" * 32_769}, "userData"),
    ({"userData": "\u00e9" * 16_385}, "userData"),
    ({"userData": "secret://by-name"}, "userData"),
    ({"network": "lan"}, "network"),
    ({"runtime": "docker"}, "runtime"),
    ({"image_id": "big", "flavor": "tiny"}, "flavor"),
    ({"volumes": [{"volume": "data", "mountPath": "data"}]}, "volumes[0].mountPath"),
    ({"volumes": [{"volume": "data", "mountPath": "/a/../etc"}]}, "volumes[0].mountPath"),
    ({"volumes": [{"volume": "data", "mountPath": "/a//b"}]}, "volumes[0].mountPath"),
    ({"volumes": [{"volume": "data", "mountPath": "/a b"}]}, "volumes[0].mountPath"),
    ({"volumes": [{"volume": "data", "mountPath": "/a"}, {"volume": "data", "mountPath": "/b"}]}, "volumes"),
    ({"volumes": [{"volume": f"v{n}", "mountPath": f"/{n}"} for n in range(9)]}, "volumes"),
]


async def test_what_does_not_fit_is_refused_at_its_path(world: World) -> None:
    for given, path in MISFITS:
        with refused(ErrorCode.INVALID_INPUT, path=path) as refusal:
            await world.create(**given)
        assert CANARY not in json.dumps([refusal[0].message, refusal[0].details])


async def test_what_is_not_in_view_is_missing(world: World) -> None:
    for given in ({"flavor": "none"}, {"image_id": "none"}, {"pool_id": "pool_none"}):
        with refused(ErrorCode.NOT_FOUND):
            await world.create(**given)


async def test_a_pool_that_was_not_offered_is_missing(world: World) -> None:
    with refused(ErrorCode.NOT_FOUND):
        await world.create(as_="globex", tenant_id="globex")


async def test_an_archived_pool_takes_no_template(world: World) -> None:
    await world.h.call("pools.archive", tenant_id="root", pool_id=world.pool_id)
    with refused(ErrorCode.INVALID_INPUT, path="poolId"):
        await world.create()
    with refused(ErrorCode.INVALID_INPUT, path="poolId"):
        await world.volume("data")


async def test_a_name_is_unique_in_its_tenant_alone(world: World) -> None:
    await world.create()
    with refused(ErrorCode.CONFLICT):
        await world.create()
    await world.h.call("pools.offer", tenant_id="root", pool_id=world.pool_id, to_tenant_id="globex", quota={})
    await world.create(as_="globex", tenant_id="globex")


async def test_a_key_makes_one_template(world: World) -> None:
    made = await world.create(idempotency_key="once")
    assert await world.create(idempotency_key="once") == made
    with refused(ErrorCode.CONFLICT):
        await world.create(idempotency_key="once", flavor="tiny")


async def test_user_data_is_sealed_and_told_as_a_digest(world: World) -> None:
    text = f"#cloud-config\npassword: {CANARY}"
    made = await world.create(user_data=text, idempotency_key="once")
    assert made.user_data == digest_of(text)
    sealed = await world.h.database.statement(SEALED, tenant_id="acme", id=made.id)
    assert sealed is not None
    sealer = world.h.app.deployment.sealer
    assert sealer.open(sealed, purpose=f"user-data:{made.id}") == text
    await world.update(made, user_data=f"{text}!")
    assert CANARY not in str(await world.h.database.statement(EVERYTHING))
    gone = await world.update(made, user_data=None)
    assert (gone.user_data, gone.version) == (None, 3)


async def test_secrets_are_named_and_kept(world: World) -> None:
    index, cloud = await world.secret("index"), await world.secret("cloud")
    made = await world.create(env={"PIP_INDEX_URL": index}, user_data=cloud)
    assert (made.env, made.user_data) == ({"PIP_INDEX_URL": index}, cloud)
    for reference in (index, cloud):
        with refused(ErrorCode.INVALID_STATE) as refusal:
            await world.call("secrets.delete", secret_id=reference.rpartition("/")[2])
        assert "1 sandbox template" in refusal[0].message
    await world.update(made, env={}, user_data=None)
    await world.call("secrets.delete", secret_id=index.rpartition("/")[2])


async def test_a_secret_that_is_not_there_or_not_the_tenants_is_refused(world: World) -> None:
    gone = "secret://acme/sec_01k00000000000000000000000"
    with refused(ErrorCode.NOT_FOUND, path="env.A"):
        await world.create(env={"A": gone})
    own = await world.secret("index")
    with pytest.raises(ComputeError) as caught:
        await world.create(env={"A": own.replace("acme", "globex")})
    assert caught.value.code in {ErrorCode.NOT_FOUND, ErrorCode.ACCESS_DENIED}


async def test_naming_a_secret_is_decided_and_a_refusal_leaves_its_row(world: World) -> None:
    reference = await world.secret("index")
    world.h.iam.denials["svc_acme"] = ["compute:secrets:use"]
    with refused(ErrorCode.ACCESS_DENIED):
        await world.create(env={"A": reference})
    denied = await world.h.database.statement(DENIED, tenant_id="acme")
    assert denied == f"compute:secrets:use compute-secret/{reference.rpartition('/')[2]}"
    await world.create()


async def test_volumes_are_mounted_in_their_order(world: World) -> None:
    for name in ("b", "a"):
        await world.volume(name)
    mounts = [{"volume": "b", "mountPath": "/b", "readOnly": True}, {"volume": "a", "mountPath": "/a"}]
    made = await world.create(volumes=mounts)
    assert [(one.volume, one.mount_path, one.read_only) for one in made.volumes] == [
        ("b", "/b", True),
        ("a", "/a", False),
    ]
    assert made.volumes[0].volume_id.startswith("vol_")
    turned = await world.update(made, volumes=mounts[::-1])
    assert [one.volume for one in turned.volumes] == ["a", "b"]
    same = await world.update(made, volumes=mounts[::-1])
    assert same == turned
    assert (await world.update(made, volumes=[])).volumes == []


async def test_each_volume_is_decided(world: World) -> None:
    volume = await world.volume("data")
    world.h.iam.denials["svc_acme"] = [f"compute:sandboxes:manage {VOLUME}/{volume.id}"]
    mounts = [{"volume": "data", "mountPath": "/data"}]
    with refused(ErrorCode.ACCESS_DENIED) as refusal:
        await world.create(volumes=mounts)
    assert refusal[0].details["resource"] == f"{VOLUME}/{volume.id}"
    made = await world.create()
    with refused(ErrorCode.ACCESS_DENIED):
        await world.update(made, volumes=mounts)
    assert (await world.call("sandboxTemplates.get", template_id=made.id)).volumes == []


async def test_a_volume_of_nobody_or_of_another_pool_is_refused(world: World) -> None:
    with refused(ErrorCode.NOT_FOUND):
        await world.create(volumes=[{"volume": "data", "mountPath": "/data"}])
    site = await world.call("sites.create", kind="custom", region="eu")
    pool = await world.call("pools.create", site_id=site.id, class_="vps-host")
    await world.volume("data", pool_id=pool.id)
    with refused(ErrorCode.INVALID_INPUT, path="volumes[0].volume"):
        await world.create(volumes=[{"volume": "data", "mountPath": "/data"}])


async def test_a_volume_stays_while_a_template_names_it(world: World) -> None:
    volume = await world.volume("data")
    made = await world.create(volumes=[{"volume": "data", "mountPath": "/data"}])
    with refused(ErrorCode.INVALID_STATE) as refusal:
        await world.call("sandboxVolumes.delete", volume_id=volume.id)
    assert "template py" in refusal[0].message
    await world.call("sandboxTemplates.delete", template_id=made.id)
    await world.call("sandboxVolumes.delete", volume_id=volume.id)
    assert (await world.call("sandboxVolumes.list")).items == []


@pytest.mark.parametrize("moves", [1, 2])
async def test_volumes_that_change_meanwhile_are_decided_once_more_and_then_conflict(moves: int) -> None:
    iam = RestlessIam(moves=moves)
    async with harness(*vps(), iam=iam) as h:
        world = await furnish(h)
        iam.world.append(world)
        await world.volume("data")
        mounts = [{"volume": "data", "mountPath": "/data"}]
        if moves == 1:
            assert [one.volume for one in (await world.create(volumes=mounts)).volumes] == ["data"]
        else:
            with refused(ErrorCode.CONFLICT) as refusal:
                await world.create(volumes=mounts)
            assert refusal[0].details["reason"] == "volumes-changed"


async def test_an_update_changes_what_it_lists_and_no_more(world: World) -> None:
    reference = await world.secret("index")
    made = await world.create(warm={"min": 1, "max": 4}, env={"A": reference}, user_data="text", network="private")
    larger = await world.update(made, warm={"min": 2})
    assert (larger.warm.min, larger.warm.max) == (2, 2)
    kept = ("env", "user_data", "network", "flavor", "image_id", "default_ttl_seconds", "volumes", "runtime")
    assert [getattr(larger, name) for name in kept] == [getattr(made, name) for name in kept]
    small = await world.update(made, network="none", max_ttl_seconds=3600, env={})
    assert (small.network, small.max_ttl_seconds, small.env, small.version) == ("none", 3600, {}, 3)
    assert await world.update(made, network="none") == small
    async with world.h.database.transaction(read_only=True) as tx:
        told = await tx.many(EVENTS, tenant_id="acme")
    assert told == [
        "sandbox-template.created []",
        'sandbox-template.updated ["warm"]',
        'sandbox-template.updated ["maxTtlSeconds", "env", "network"]',
    ]


async def test_an_update_is_held_to_the_same_rules(world: World) -> None:
    made = await world.create(default_ttl_seconds=600)
    with refused(ErrorCode.INVALID_INPUT, path="defaultTtlSeconds"):
        await world.update(made, max_ttl_seconds=60)
    with refused(ErrorCode.INVALID_INPUT, path="flavor"):
        await world.update(made, flavor="tiny")
    with refused(ErrorCode.NOT_FOUND):
        await world.update(made, flavor="none")
    with refused(ErrorCode.INVALID_INPUT, path="poolId"):
        await world.update(made, poolId="pool_x")
    with refused(ErrorCode.INVALID_INPUT, path="env"):
        await world.update(made, env=None)


async def test_a_flavor_that_a_template_names_is_archived_and_its_image_stays(world: World) -> None:
    made = await world.create()
    root = {"tenant_id": "root", "pool_id": world.pool_id}
    deleted = await world.h.call("flavors.delete", **root, name="small")
    assert (deleted.deleted, deleted.archived) == (False, True)
    await world.update(made, network="none")
    with refused(ErrorCode.NOT_FOUND):
        await world.create("other")
    (image,) = [one for one in (await world.h.call("images.list", tenant_id="root")).items if one.name == "debian"]
    with refused(ErrorCode.INVALID_STATE):
        await world.h.call("images.delete", tenant_id="root", image_id=image.id)


async def test_another_tenant_sees_nothing_of_it(world: World) -> None:
    made, volume = await world.create(), await world.volume("data")
    elsewhere = {"as_": "globex", "tenant_id": "globex"}
    with refused(ErrorCode.NOT_FOUND):
        await world.call("sandboxTemplates.get", **elsewhere, template_id=made.id)
    with refused(ErrorCode.NOT_FOUND):
        await world.call("sandboxVolumes.delete", **elsewhere, volume_id=volume.id)
    assert (await world.call("sandboxTemplates.list", **elsewhere)).items == []


async def test_lists_are_paged_by_name_and_filtered_by_pool(world: World) -> None:
    for name in ("b", "a", "c"):
        await world.create(name)
        await world.volume(name)
    for group in ("sandboxTemplates", "sandboxVolumes"):
        first = await world.call(f"{group}.list", limit=2)
        rest = await world.call(f"{group}.list", limit=2, cursor=first.next_cursor)
        assert [one.name for one in (*first.items, *rest.items)] == ["a", "b", "c"]
        assert (await world.call(f"{group}.list", pool_id="pool_other")).items == []
