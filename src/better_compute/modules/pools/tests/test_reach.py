"""An offer reaches the tenants below with the embedded IAM's own tree, through suspension and back."""

from typing import Any

from better_compute.builtin import vps
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform


async def call(p: EmbeddedPlatform, method: str, **fields: Any) -> Any:
    return await p.app.envelope.call(p.app.registry.method(method), p.token, fields)


async def work(p: EmbeddedPlatform) -> None:
    await p.app.worker.run_once("pools.tree", "all")
    while await p.app.worker.run_due():
        pass


async def seeing(p: EmbeddedPlatform, pool_id: str) -> list[str]:
    rows = await p.rows(f"select tenant_id from projection where type = 'compute-pool' and id = '{pool_id}' order by 1")
    return [str(row[0]) for row in rows]


async def test_the_view_follows_the_tree_of_the_iam() -> None:
    async with embedded_platform(*vps()) as p:
        await p.call("tenants.create", parent_id="root", id="org", name="Org")
        await p.call("tenants.create", parent_id="org", id="team", name="Team", type="project")
        site = await call(p, "sites.create", tenant_id="root", kind="shared", region="eu")
        pool = await call(p, "pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
        offer = {"tenant_id": "root", "pool_id": pool.id, "to_tenant_id": "org"}
        await call(p, "pools.offer", **offer, quota={"vcpu": 1}, include_descendants=True)
        await work(p)
        assert await seeing(p, pool.id) == ["org", "root", "team"]
        await p.call("tenants.create", parent_id="org", id="squad", name="Squad", type="project")
        await work(p)
        assert await seeing(p, pool.id) == ["org", "root", "squad", "team"]
        await p.rows("update iam.tenants set status = 'suspended' where id = 'team' returning id")
        await work(p)
        assert await seeing(p, pool.id) == ["org", "root", "squad"]
        await p.rows("update iam.tenants set status = 'active' where id = 'team' returning id")
        await work(p)
        assert await seeing(p, pool.id) == ["org", "root", "squad", "team"]
        await call(p, "pools.unoffer", **offer)
        assert await seeing(p, pool.id) == ["root"]
