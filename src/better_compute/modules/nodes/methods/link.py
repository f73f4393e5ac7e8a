"""The host link: enroll, hello, report, desired (wire v1, design section 9).

Hosts are not callers of methods: each route checks the host's own credential. A report is stored when it is newer than
what is stored; what it says about guests becomes rows, and reconcilers are woken by the node's id.
"""

import base64
import binascii
import json
import secrets
from dataclasses import dataclass, replace
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from better_compute.base.clock import Clock, SystemClock
from better_compute.base.errors import invalid
from better_compute.base.ids import new_id
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.events import EventType
from better_compute.kernel.hostlink import HostRequest, HostRoute
from better_compute.modules.nodes import store
from better_compute.modules.nodes.methods.operate import token_hash, unauthenticated
from better_compute.modules.nodes.methods.waiting import Waiting, generations, guest_source
from better_compute.modules.nodes.rules import LONGEST_POLL_SECONDS, check_hello_time, is_newer, state_after_report
from better_compute.modules.nodes.schema import ENROLLED, READY, NodeChanged, NodeState
from better_compute.modules.nodes.store import NodeRow, node_resource
from better_compute.wire.document import document_json, document_value, parse_document
from better_compute.wire.v1.desired import DESIRED_PATH, Desired
from better_compute.wire.v1.enroll import (
    ENROLL_PATH,
    HELLO_PATH,
    HELLO_SKEW_MS,
    TOKEN_LIFE_MS,
    Enrolled,
    Enrolment,
    Hello,
    Welcome,
    hello_bytes,
)
from better_compute.wire.v1.inventory import inventory_hash
from better_compute.wire.v1.report import REPORT_PATH, Received, Report

TOKEN_CACHE_SECONDS: Final = 5.0
"""How long another process may still accept the token of a node that was just retired (design, section 5)."""

LARGEST_REPORT: Final = 16 << 20
"""Twenty thousand guests with their conditions."""


@dataclass(frozen=True, slots=True)
class Known:
    """A token that was good when it was last looked up."""

    node_id: str
    until: float
    """By the monotonic clock: the end of its life, or of what is remembered of it, whichever is first."""


class HostTokens:
    """Remembers, for a few seconds, which tokens of hosts are good."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock: Clock = SystemClock()
        self._known: dict[str, Known] = {}

    async def node_of(self, token: str | None) -> str:
        """The node behind a bearer token; UNAUTHENTICATED tells the daemon to say hello again."""
        if not token:
            raise unauthenticated("A bearer token is needed; say hello first.")
        hashed = token_hash(token)
        now = self._clock.monotonic_s()
        known = self._known.get(hashed)
        if known is None or known.until <= now:
            known = await self._look_up(hashed, now)
        return known.node_id

    async def _look_up(self, hashed: str, now: float) -> Known:
        self._known = {key: entry for key, entry in self._known.items() if entry.until > now}
        row = await self._database.statement(store.FIND_SESSION, token_hash=hashed)
        if row is None:
            raise unauthenticated("This token is unknown or over; say hello again.")
        known = Known(node_id=row.node_id, until=now + min(TOKEN_CACHE_SECONDS, row.left_seconds))
        self._known[hashed] = known
        return known


async def enroll(deployment: Deployment, request: HostRequest) -> bytes:
    """Registers a host's key for a one-time token."""
    enrolment = parse_document(Enrolment, request.body)
    async with deployment.database.transaction() as tx:
        found = await tx.maybe(store.FIND_ENROLMENT, token_hash=token_hash(enrolment.token))
        if found is None:
            raise unauthenticated("This enrolment token is not known; ask the operator for one (nodes enroll).")
        row = await tx.one(store.LOCK, id=found.node_id)
        if row.public_key is not None and row.public_key != enrolment.public_key:
            raise unauthenticated("This enrolment token was spent by another host; ask the operator for a new one.")
        if row.public_key is None:
            if found.expired or row.state == "retired":
                raise unauthenticated("This enrolment token is over; ask the operator for a new one (nodes enroll).")
            await _register(deployment, tx, row, enrolment)
    return document_json(Enrolled(node_id=found.node_id))


async def hello(deployment: Deployment, request: HostRequest) -> bytes:
    """Answers a bearer token for a signed hello."""
    said = parse_document(Hello, request.body)
    async with deployment.database.transaction() as tx:
        row = await tx.maybe(store.LOCK, id=said.node_id)
        if row is None or row.public_key is None or row.state == "retired":
            raise unauthenticated("This node is not known or was retired; enroll the host again.")
        _check_signature(row.public_key, said)
        check_hello_time(host_ms=said.time, now_ms=tx.now_ms)
        await tx.run(store.FORGET_OLD, node_id=row.id, seconds=2 * HELLO_SKEW_MS // 1000)
        if not await tx.maybe(store.NOTE_HELLO, node_id=row.id, nonce=said.nonce):
            raise unauthenticated("This hello was said before; sign a new one.")
        token = f"bc_hst_{secrets.token_urlsafe(32)}"
        expires_at = await tx.one(
            store.INSERT_SESSION,
            token_hash=token_hash(token),
            tenant_id=row.tenant_id,
            node_id=row.id,
            seconds=TOKEN_LIFE_MS // 1000,
        )
        return document_json(Welcome(token=token, expires_at=expires_at, time=tx.now_ms))


async def report(deployment: Deployment, request: HostRequest) -> bytes:
    """Stores what a host observed, when it is newer than what is stored."""
    node_id = await deployment.provided(HostTokens).node_of(request.token)
    said = parse_document(Report, request.body)
    if said.inventory is not None and inventory_hash(said.inventory) != said.inventory_hash:
        raise invalid("inventoryHash", "the inventory has another hash; send it again")
    effects = Effects()
    async with deployment.database.transaction() as tx:
        row = await tx.one(store.LOCK, id=node_id)
        if row.state == "retired":
            raise unauthenticated("This node was retired.")
        known = said.inventory is not None or row.inventory_hash == said.inventory_hash
        if not is_newer(
            boot_id=said.boot_id, sequence=said.sequence, stored_boot_id=row.boot_id, stored_sequence=row.sequence
        ):
            return document_json(Received(accepted=False, inventory_known=known))
        state = state_after_report(row.state, has_inventory=known)
        skew_ms = None if said.time is None else said.time - tx.now_ms
        await tx.run(store.STORE_REPORT, id=node_id, state=state, clock_skew_ms=skew_ms, **_stored(said))
        await _store_guests(tx, node_id, said, effects)
        if said.inventory is not None and row.inventory_hash != said.inventory_hash:
            effects.wake("vps.hosts", node_id)
        if state != row.state:
            _note_state(deployment, effects, row, state, READY)
        await tx.run(WRITE_EFFECTS, **effects.params())
    return document_json(Received(accepted=True, inventory_known=known))


async def desired(deployment: Deployment, request: HostRequest) -> bytes | None:
    """Answers what a node should run as soon as it is newer than what the host holds; None when nothing came."""
    node_id = await deployment.provided(HostTokens).node_of(request.token)
    held = _number(request, "generation", most=2**53)
    seconds = min(_number(request, "wait", most=3600), LONGEST_POLL_SECONDS)
    waiting = deployment.provided(Waiting)
    waiting.saw(node_id)
    if (await generations(deployment, [node_id])).get(node_id, 0) <= held and not await waiting.wait(
        node_id, held=held, seconds=seconds
    ):
        return None
    waiting.saw(node_id)
    return await _document(deployment, node_id, held)


ROUTES: Final = (
    HostRoute(path=ENROLL_PATH, verb="POST", run=enroll, described="Makes a host a node, once."),
    HostRoute(path=HELLO_PATH, verb="POST", run=hello, described="Answers a bearer token for a signed hello."),
    HostRoute(
        path=REPORT_PATH,
        verb="POST",
        run=report,
        described="Takes what a host observed.",
        max_body=LARGEST_REPORT,
    ),
    HostRoute(path=DESIRED_PATH, verb="GET", run=desired, described="Answers what a host should run."),
)


async def _register(deployment: Deployment, tx: Tx, row: NodeRow, enrolment: Enrolment) -> None:
    await tx.run(
        store.REGISTER,
        id=row.id,
        public_key=enrolment.public_key,
        hostname=enrolment.hostname,
        labels=dict(enrolment.labels),
        daemon_version=enrolment.daemon_version,
    )
    effects = Effects()
    _note_state(deployment, effects, replace(row, hostname=enrolment.hostname), row.state, ENROLLED)
    await tx.run(WRITE_EFFECTS, **effects.params())


def _check_signature(public_key: str, said: Hello) -> None:
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key))
        signed = hello_bytes(node_id=said.node_id, time=said.time, nonce=said.nonce)
        key.verify(base64.b64decode(said.signature), signed)
    except (InvalidSignature, ValueError, binascii.Error):
        raise unauthenticated("The signature is not of this node's key.") from None


def _stored(said: Report) -> dict[str, Any]:
    inventory = None if said.inventory is None else json.dumps(document_value(said.inventory))
    return {
        "boot_id": said.boot_id,
        "sequence": said.sequence,
        "daemon_version": said.daemon_version,
        "labels": dict(said.labels),
        "conditions": json.dumps([document_value(condition) for condition in said.conditions]),
        "generation": said.generation,
        "inventory": inventory,
        "inventory_hash": None if inventory is None else said.inventory_hash,
    }


async def _store_guests(tx: Tx, node_id: str, said: Report, effects: Effects) -> None:
    if said.instances is None:
        return
    guests = [
        {
            "id": guest.id,
            "state": guest.state,
            "generation": guest.generation,
            "conditions": [document_value(condition) for condition in guest.conditions],
            "message": guest.message,
        }
        for guest in said.instances
    ]
    changed = await tx.many(store.STORE_GUESTS, node_id=node_id, guests=json.dumps(guests))
    await tx.run(store.FORGET_GUESTS, node_id=node_id, ids=[guest.id for guest in said.instances])
    if changed:
        effects.wake("instances.observed", node_id)


def _note_state(
    deployment: Deployment,
    effects: Effects,
    row: NodeRow,
    state: NodeState,
    event: EventType,
) -> None:
    changed = NodeChanged(node_id=row.id, pool_id=row.pool_id, state=state, previous=row.state)
    effects.add_event(
        event_id=new_id("evt", deployment.clock.now_ms()),
        tenant_id=row.tenant_id,
        event_type=event.name,
        subject=f"node/{row.id}",
        payload=event.dump(changed),
    )
    effects.project(node_resource(row, state=state))


async def _document(deployment: Deployment, node_id: str, held: int) -> bytes | None:
    source = guest_source(deployment)
    if source is None:
        return None
    async with deployment.database.transaction(read_only=True, isolation="repeatable read") as tx:
        generation = (await source.generations(tx, [node_id])).get(node_id, 0)
        if generation <= held:
            return None
        instances = await source.desired(deployment, tx, node_id)
    return document_json(Desired(node_id=node_id, generation=generation, instances=tuple(instances)))


def _number(request: HostRequest, name: str, *, most: int) -> int:
    text = request.query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        raise invalid(name, f"write a whole number from 0 to {most}")
    return int(text)
