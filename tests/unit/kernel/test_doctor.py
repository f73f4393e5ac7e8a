"""Running checks: one that fails hides none, a lost race is run again, what was repaired is looked at once more."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from better_compute.base.errors import ComputeError
from better_compute.db.errors import SerializationLost
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check, diagnose, examine
from better_compute.kernel.findings import Finding
from better_compute.kernel.module import Module
from better_compute.kernel.registry import build_registry
from better_compute.testing.harness import harness

BROKEN = Query(name="tests.doctor.broken", sql="select 1 / 0", row=int, crosses_tenants="a test fails")
COUNT = Query(
    name="tests.doctor.count",
    sql="select count(*) from audit where method = 'doctor'",
    row=int,
    crosses_tenants="a test counts",
)
FINDING = Finding(
    code="thing.broken", severity="error", subject="thing/1", message="Broken.", remedy="Mend it.", repairable=True
)


class Thing:
    """Something that is broken until it was mended, which may take several tries."""

    def __init__(self, *, losses: int = 0, mendable: bool = True) -> None:
        self.broken = True
        self.losses = losses
        self.mendable = mendable

    async def find(self, _deployment: Deployment, _tx: Tx) -> Sequence[Finding]:
        return [FINDING] if self.broken else []

    async def mend(self, _deployment: Deployment, _tx: Tx, _finding: Finding) -> bool:
        if self.losses:
            self.losses -= 1
            raise SerializationLost
        if self.mendable:
            self.broken = False
        return self.mendable

    def check(self) -> Check:
        return Check(name="thing.broken", described="Looks.", find=self.find, repair=self.mend)


async def fail(_deployment: Deployment, tx: Tx) -> Sequence[Finding]:
    await tx.one(BROKEN)
    return []


FAILING = Check(name="thing.failing", described="Fails.", find=fail)


async def test_a_check_that_fails_is_a_finding_and_hides_no_other() -> None:
    async with harness() as h:
        found = await diagnose(h.app.deployment, [FAILING, Thing().check()])
        assert [one.code for one in found] == ["doctor.failed", "thing.broken"]
        assert found[0].subject == "check/thing.failing"


async def test_a_repair_is_noted_once_and_tried_again_after_a_lost_race() -> None:
    async with harness() as h:
        [found] = await diagnose(h.app.deployment, [Thing(losses=2).check()], fix=True)
        assert found.repaired
        assert await h.database.statement(COUNT) == 1


async def test_what_could_not_be_repaired_is_found_again_and_not_noted() -> None:
    async with harness() as h:
        [found] = await diagnose(h.app.deployment, [Thing(mendable=False).check()], fix=True)
        assert not found.repaired
        assert await h.database.statement(COUNT) == 0


async def test_without_fix_nothing_is_repaired() -> None:
    async with harness() as h:
        thing = Thing()
        assert await diagnose(h.app.deployment, [thing.check()]) == [FINDING]
        assert thing.broken


async def test_a_finding_of_a_check_without_a_repair_is_not_repairable() -> None:
    async with harness() as h:
        check = replace(Thing().check(), repair=None)
        async with h.database.transaction(read_only=True) as tx:
            [found] = await examine(h.app.deployment, tx, [check])
        assert not found.repairable


def test_two_checks_of_one_name_do_not_fit_together() -> None:
    one = Module(name="one", package=Path(), checks=(FAILING,))
    other = Module(name="other", package=Path(), checks=(FAILING,))
    with pytest.raises(ComputeError, match=r"check thing\.failing"):
        build_registry([one, other])
