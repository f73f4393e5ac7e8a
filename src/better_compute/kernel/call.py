"""One call, from its decision to its answer.

A `Call` is what a method's function gets beside its input: who calls, in which tenant, the open transaction, and a
place to leave effects. It offers no way round the envelope: a method cannot decide for itself, open a second
transaction or write an audit row. `check` and `invoke` exist on calls of composite methods only (see `composite.py`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.ids import derived_id, new_id
from better_compute.db.errors import DatabaseRefusal
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import Effects
from better_compute.kernel.events import EventType
from better_compute.kernel.principal import Caller
from better_compute.kernel.resources import Resource

if TYPE_CHECKING:
    from better_compute.kernel.composite import Composite
    from better_compute.kernel.targets import Also

T = TypeVar("T")
R = TypeVar("R")


class Called(Protocol):
    """What a call knows of its method."""

    @property
    def name(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def transaction(self) -> str: ...


class Call:
    """The surroundings of one run of one method."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        caller: Caller,
        tenant_id: str,
        method: Called,
        request_id: str,
        object_id: str = "",
        planned: Mapping[tuple[str, str], Resource] | None = None,
    ) -> None:
        self.deployment = deployment
        self.caller = caller
        self.tenant_id = tenant_id
        self.method_name = method.name
        self.action = method.action
        self.request_id = request_id
        self.object_id = object_id
        """The id of the object this call makes, chosen before anything was read; empty when it makes none."""
        self.effects = Effects()
        self.metadata: dict[str, Any] = {}
        self.resource: Resource | None = None
        """What the call was decided on; None for methods that decide on nothing or row by row."""
        self.further: tuple[Also, ...] = ()
        """What else the call was decided on; the method runs on these and looks nothing up again by name."""
        self.lacking: Also | None = None
        """Which of them refused, for the audit trail."""
        self.rows_uniform: bool = False
        """For lists: every row may be shown, so rows need no decision of their own."""
        self.refusal: DatabaseRefusal | None = None
        """For hot methods: why the statement before this attempt was refused."""
        self.attempt = 0
        self.composite: Composite | None = None
        self._cached_views = method.transaction == "statement"
        self._planned = planned or {}
        self._rested_on: list[Resource] = []
        self._tx: Tx | None = None

    @property
    def tx(self) -> Tx:
        """The open transaction; a method that runs without one must not ask."""
        assert self._tx is not None, f"{self.method_name} has no transaction open"
        return self._tx

    @property
    def now(self) -> int:
        """Epoch milliseconds, read from the database once per transaction."""
        return self.tx.now_ms

    @property
    def root_tenant_id(self) -> str:
        """The tenant that owns the shared fleet."""
        return self.deployment.iam.root_tenant_id

    @property
    def decided(self) -> Resource:
        """What the call was decided on, for methods that always have it."""
        assert self.resource is not None
        return self.resource

    def bind(self, tx: Tx | None) -> None:
        """The envelope's: gives the call its transaction, or takes it away."""
        self._tx = tx

    def provided(self, cls: type[T]) -> T:
        """The object of this class that a module provides."""
        return self.deployment.provided(cls)

    def new_id(self, prefix: str) -> str:
        """A fresh id for a further object that this call makes."""
        return new_id(prefix, self.deployment.clock.now_ms())

    def keyed_id(self, prefix: str, method_name: str, key: str) -> str:
        """The id that a call of this caller with this idempotency key gives its object."""
        return derived_id(prefix, method_name, self.tenant_id, self.caller.id, key)

    async def view(self, resource_type: str, resource_id: str) -> Resource:
        """A resource as it is in this tenant's view, or about to be; NOT_FOUND when it is in neither."""
        about_to_be = self._planned.get((resource_type, resource_id))
        if about_to_be is not None:
            return about_to_be
        views = self.deployment.views
        if self._cached_views:
            resource = await views.cached(self.tenant_id, resource_type, resource_id)
        else:
            resource = await views.find(self.tenant_id, resource_type, resource_id)
        if resource is None:
            raise not_found(resource_type.removeprefix("compute-").replace("-", " "), resource_id)
        self._rested_on.append(resource)
        return resource

    def forget_views(self) -> None:
        """The envelope's: has every view this call rested on read again."""
        for resource in self._rested_on:
            self.deployment.views.forget(resource)
        self._rested_on.clear()

    async def read(self, query: Query[R], **params: Any) -> R | None:
        """One statement outside any transaction, for what a decision rests on."""
        return await self.deployment.database.statement(query, **params)

    def emit(self, event_type: EventType, payload: Any, *, subject: str, tenant_id: str | None = None) -> None:
        """Publishes an event when this call commits; `subject` is `<kind>/<id>`."""
        self.effects.add_event(
            event_id=self.new_id("evt"),
            tenant_id=tenant_id or self.tenant_id,
            event_type=event_type.name,
            subject=subject,
            payload=event_type.dump(payload),
        )

    def project(self, resource: Resource) -> None:
        """Puts a resource into a tenant's view when this call commits."""
        self.effects.project(resource)

    def unproject(self, resource_type: str, resource_id: str, *, tenant_id: str | None = None) -> None:
        """Takes a resource out of a tenant's view when this call commits."""
        self.effects.unproject(
            tenant_id=tenant_id or self.tenant_id, resource_type=resource_type, resource_id=resource_id
        )

    def wake(self, reconciler: str, key: str) -> None:
        """Has a reconciler look at a key soon after this call commits."""
        self.effects.wake(reconciler, key)

    def note(self, **metadata: Any) -> None:
        """Adds to the audit row of this call; JSON values, no secrets."""
        self.metadata.update(metadata)

    async def refuse_in_use(self, kind: str, ident: str) -> None:
        """INVALID_STATE while any module still uses the thing."""
        for ask in self.deployment.uses.get(kind, ()):
            user = await ask(self.tx, ident)
            if user is not None:
                raise ComputeError(
                    ErrorCode.INVALID_STATE, f"The {kind} {ident} is still used by {user}; remove that first."
                )
