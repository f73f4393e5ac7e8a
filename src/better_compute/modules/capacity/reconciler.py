"""`vps.hosts`: node resources and devices follow what each host reports (seed 003).

The key `all` looks every 30 seconds for hosts whose inventory, pool policy or reserve is not the one their rows were
derived from, and wakes one key per such host; so a quiet fleet costs one statement. A report with a new inventory wakes
its node's key at once. A host that shrank below what is allocated on it counts as having something new until enough was
returned, so that it does not go on selling what it no longer has.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from better_compute.base.canonical import fingerprint
from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.capacity.exports.options import HostOptions
from better_compute.modules.capacity.rules.hosts import (
    Device,
    DevicePlan,
    Reserve,
    Row,
    derive_rows,
    is_held_up,
    plan_devices,
    plan_rows,
)
from better_compute.modules.capacity.store import hosts
from better_compute.wire.document import parse_document
from better_compute.wire.v1.inventory import Inventory

NAME: Final = "vps.hosts"
ALL: Final = "all"
NOT_YET: Final = ""
"""A basis that no host has, so that it is looked at again."""
NO_DEVICES: Final = DevicePlan(add=(), update=(), retire=())


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Either the hosts that have something new, or everything about one of them."""

    stale: tuple[str, ...] = ()
    node_id: str = ""
    basis: str = ""
    inventory: Inventory | None = None
    policy: dict[str, Any] = field(default_factory=dict)
    reserve: Reserve | None = None
    rows: dict[str, Row] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Keys to wake, or rows and devices to write for one host."""

    stale: tuple[str, ...] = ()
    node_id: str = ""
    basis: str = ""
    """`NOT_YET` while the rows cannot be what the inventory says."""
    rows: tuple[Row, ...] = ()
    devices: DevicePlan = NO_DEVICES


def hosts_reconciler(every_seconds: float) -> Reconciler[HostFacts, HostPlan, None]:
    """The reconciler, looking at all hosts this often."""
    return Reconciler(
        name=NAME,
        described="Derives what each host may sell from its inventory, its pool's policy and the reserve.",
        load=load,
        plan=plan,
        record=record,
        interval_seconds=every_seconds,
        keys=(ALL,),
    )


async def load(step: Step, tx: Tx) -> HostFacts | None:
    """The hosts with something new, or one host with its rows and devices."""
    options = step.deployment.provided(HostOptions)
    mark = _mark(options)
    if step.key == ALL:
        stale = await tx.many(hosts.STALE_HOSTS, reserve=mark)
        return HostFacts(stale=tuple(stale)) if stale else None
    host = await tx.maybe(hosts.FIND_HOST, node_id=step.key, reserve=mark)
    if host is None:
        return None
    return HostFacts(
        node_id=host.id,
        basis=host.basis,
        inventory=parse_document(Inventory, host.inventory),
        policy=host.policy,
        reserve=options.reserve_of(host.policy),
        rows=await hosts.rows_of(tx, host.id),
        devices=await hosts.devices_of(tx, host.id),
    )


def plan(facts: HostFacts) -> HostPlan | None:
    """What to write; the basis even when no row changes, so that the host is not read again before it has news."""
    if facts.inventory is None or facts.reserve is None:
        return HostPlan(stale=facts.stale)
    overcommit = facts.policy.get("overcommit") or {}
    derived = derive_rows(facts.inventory, reserve=facts.reserve, overcommit=overcommit)
    rows = tuple(plan_rows(facts.rows, derived))
    devices = plan_devices(facts.devices, facts.inventory)
    held_up = is_held_up(facts.rows, derived)
    if held_up and not rows and devices == NO_DEVICES:
        return None
    return HostPlan(node_id=facts.node_id, basis=NOT_YET if held_up else facts.basis, rows=rows, devices=devices)


async def record(step: Step, tx: Tx, planned: HostPlan, _done: None) -> None:
    """Writes rows first, then devices, which is the lock order."""
    for node_id in planned.stale:
        step.effects.wake(NAME, node_id)
    if not planned.node_id:
        return
    landed = await hosts.put_rows(tx, planned.node_id, planned.rows)
    for facts in planned.devices.add:
        await hosts.add_device(tx, planned.node_id, step.new_id("dev"), facts)
    for device_id, facts in planned.devices.update:
        await hosts.update_device(tx, planned.node_id, device_id, facts)
    for device_id in planned.devices.retire:
        await tx.run(hosts.RETIRE_DEVICE, id=device_id, node_id=planned.node_id)
    await tx.run(hosts.PUT_SYNC, node_id=planned.node_id, basis=planned.basis if landed else NOT_YET)


def _mark(options: HostOptions) -> str:
    reserve = options.reserve
    return fingerprint([reserve.vcpu, reserve.memory_gib, reserve.disk_gib])[:8]
