"""How many statements a plan takes: as many for a thousand items as for ten (design, section 10)."""

from collections import Counter
from typing import Any

import pytest

from better_compute.db import execute


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts every statement by name, on its way to the database."""
    counted: Counter[str] = Counter()

    def counting(send: Any) -> Any:
        async def sent(connection: Any, query: Any, params: Any) -> Any:
            counted[query.name] += 1
            return await send(connection, query, params)

        return sent

    for name in ("_execute", "fetch_single"):
        monkeypatch.setattr(execute, name, counting(getattr(execute, name)))
    return counted


def fleet(count: int) -> dict[str, Any]:
    """A document with so many sites, pools, owner quotas, offers and flavors each."""
    numbers = range(count)
    return {
        "version": 1,
        "sites": [{"name": f"s{n}", "kind": "shared", "region": "eu"} for n in numbers],
        "pools": [
            {
                "name": f"p{n}",
                "site": f"s{n}",
                "class": "vps-host",
                "ownerQuota": {"vcpu": n},
                "offers": [{"tenant": "acme", "quota": {"vcpu": 4}}],
            }
            for n in numbers
        ],
        "flavors": [{"pool": f"p{n}", "name": "f", "vcpu": 1, "memoryGiB": 1, "diskGiB": 1} for n in numbers],
    }


async def test_a_plan_takes_as_many_statements_for_1000_items_as_for_10(
    operator: Any, statements: Counter[str]
) -> None:
    taken = []
    for count in (2, 200):
        await operator.apply(fleet(count))
        statements.clear()
        planned = await operator.plan(fleet(count), prune=True)
        assert planned.summary.unchanged == 5 * count
        taken.append(dict(statements))
    assert taken[0] == taken[1]
    assert sum(taken[0].values()) <= 10
    statements.clear()
    exported = await operator.h.call("fleet.export", tenant_id="root")
    assert len(exported.config["pools"]) == 200
    assert sum(statements.values()) <= 10


async def test_a_drift_check_takes_as_many_statements_for_1000_items_as_for_10(
    operator: Any, statements: Counter[str]
) -> None:
    taken = []
    for count in (2, 200):
        await operator.apply(fleet(count))
        statements.clear()
        await operator.check()
        taken.append(dict(statements))
    assert taken[0] == taken[1]


async def test_what_an_apply_leaves_behind_is_written_by_few_statements(
    operator: Any, statements: Counter[str]
) -> None:
    await operator.apply(fleet(100))
    assert statements["effects.write"] <= 6
    assert statements["idempotency.claim"] == statements["idempotency.find"] == 0
    assert statements["idempotency.claim_many"] == 1
