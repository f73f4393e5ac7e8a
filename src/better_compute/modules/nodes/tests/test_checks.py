"""A report says when the host wrote it, and the doctor tells of clocks that are off."""

import hashlib

import psycopg
import pytest

from better_compute.builtin import vps
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.hostlink import HostRequest
from better_compute.modules.nodes.checks import CHECKS
from better_compute.modules.nodes.methods.link import report
from better_compute.testing.harness import harness
from better_compute.wire.document import document_json
from better_compute.wire.v1.report import Report

TOKEN = "bc_hst_test"


@pytest.mark.parametrize(
    ("skew_ms", "severity"), [(0, None), (-4000, None), (90_000, "warning"), (-90_000, "warning"), (3_600_000, "error")]
)
async def test_a_clock_that_is_off_by_more_than_seconds_is_told(skew_ms: int, severity: str | None) -> None:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
        node = await h.call("nodes.enroll", tenant_id="root", pool_id=pool.id)
        hashed = hashlib.sha256(TOKEN.encode()).hexdigest()
        with psycopg.connect(h.database.settings.url, autocommit=True) as connection:
            connection.execute(
                """insert into node_sessions (token_hash, tenant_id, node_id, expires_at)
                   values (%s, 'root', %s, now() + interval '1 hour')""",
                (hashed, node.node_id),
            )
        async with h.database.transaction(read_only=True) as tx:
            now = tx.now_ms
        said = Report(
            boot_id="boot", sequence=1, daemon_version="1", generation=0, inventory_hash="0" * 64, time=now + skew_ms
        )
        await report(h.app.deployment, HostRequest(token=TOKEN, query={}, body=document_json(said)))
        silent = Report(boot_id="boot", sequence=2, daemon_version="1", generation=0, inventory_hash="0" * 64)
        await report(h.app.deployment, HostRequest(token=TOKEN, query={}, body=document_json(silent)))
        found = await diagnose(h.app.deployment, CHECKS)
        assert [(one.subject, one.severity) for one in found] == (
            [] if severity is None else [(f"node/{node.node_id}", severity)]
        )
