from better_compute import __version__
from better_compute.base.errors import ErrorCode
from better_compute.modules.system.module import MODULE
from better_compute.testing.harness import harness, refused


async def test_any_caller_learns_the_version_and_the_databases_time() -> None:
    async with harness(MODULE) as h:
        version = await h.call("system.version", as_="nobody", tenant_id="acme")
        assert version.version == __version__
        assert version.root_tenant_id == "root"
        assert version.time > 1_700_000_000_000


async def test_the_catalogue_lists_what_is_served() -> None:
    async with harness(MODULE) as h:
        catalogue = await h.call("system.methods", tenant_id="root")
        assert [entry.name for entry in catalogue.items] == [
            "system.methods",
            "system.selfCheck",
            "system.version",
        ]
        assert not any(entry.mutates for entry in catalogue.items)


async def test_nobody_learns_anything_without_a_token() -> None:
    async with harness(MODULE) as h:
        with refused(ErrorCode.UNAUTHENTICATED):
            await h.call("system.version", as_="stranger", tenant_id="acme")
