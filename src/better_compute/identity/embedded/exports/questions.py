"""What a question about permissions is decided on.

A call is taken apart exactly as the envelope does it: the method's own target says what it is decided on, and its
further checks what else. Resources come from the projection, so that nobody learns of one that the tenant does not see.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from better_compute.base.errors import invalid, not_found
from better_compute.base.ids import new_id
from better_compute.base.models import camel, parse_input
from better_compute.identity.embedded.schema import Question, ResourceAbout, ResourceRef, Simulate
from better_compute.identity.iam.exports import IAM, iam_resource
from better_compute.kernel.call import Call
from better_compute.kernel.iam import Check
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.principal import Caller
from better_compute.kernel.registry import Registry
from better_compute.kernel.resources import FLEET, TENANT, Resource, fleet_resource, tenant_resource


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call would be decided on."""

    checks: tuple[Check, ...]
    """In the order of the envelope; none when anybody may call."""
    mutates: bool
    whole_type: bool = False
    """The call lists, and no row of it was named: only the type of the one resource means anything."""


async def named_resource(call: Call, named: ResourceRef) -> Resource:
    """The resource in the call's tenant; INVALID_INPUT for a type that there is not, NOT_FOUND for one not in view."""
    if named.type not in call.provided(Registry).resource_types:
        raise invalid("resource.type", f"there are no resources of the type {named.type} here")
    if named.type == IAM:
        return iam_resource(call.tenant_id, named.id)
    special = {TENANT: tenant_resource(call.tenant_id), FLEET: fleet_resource(call.root_tenant_id)}.get(named.type)
    if special is None:
        return await call.view(named.type, named.id)
    if (special.id, special.tenant_id) != (named.id, call.tenant_id):
        raise not_found(named.type.removeprefix("compute-"), named.id)
    return special


async def checks_of(call: Call, questions: Sequence[Question]) -> list[Check]:
    """The questions as the port takes them."""
    return [Check(action=one.action, resource=await named_resource(call, one.resource)) for one in questions]


async def asked_by(call: Call, caller: Caller, given: Simulate) -> Asked:
    """What the call to be explained would be decided on, were it this caller's.

    INVALID_INPUT when the question leaves that open. Refusals of the method's own target are raised as they are.
    """
    if (given.method is None) is (given.action is None):
        raise invalid("method", "give a method or an action, one of them")
    about = given.resource or ResourceAbout()
    if given.method is None:
        return await _by_action(call, given, about)
    method = _method(call, given.method)
    asked = Call(
        call.deployment,
        caller=caller,
        tenant_id=call.tenant_id,
        method=method,
        request_id=call.request_id,
        object_id=new_id(method.makes, call.now) if method.makes else "",
    )
    if method.target.kind == "caller":
        return Asked(checks=(), mutates=method.mutates)
    if method.target.kind == "each":
        return await _by_list(asked, method, about)
    return await _by_target(asked, method, given, about)


async def _by_action(call: Call, given: Simulate, about: ResourceAbout) -> Asked:
    assert given.action is not None
    if about.type is None or about.id is None:
        raise invalid("resource", "an action is on a resource; give its type and its id")
    resource = await named_resource(call, ResourceRef(type=about.type, id=about.id))
    return Asked(checks=(Check(action=given.action, resource=resource),), mutates=False)


async def _by_list(asked: Call, method: AnyMethod, about: ResourceAbout) -> Asked:
    (kind,) = method.target.types
    if about.id is not None:
        row = await asked.view(kind, about.id)
        return Asked(checks=(Check(action=method.action, resource=row),), mutates=False)
    whole = Resource(type=kind, id="*", tenant_id=asked.tenant_id, owner_tenant_id=asked.tenant_id)
    return Asked(checks=(Check(action=method.action, resource=whole),), mutates=False, whole_type=True)


async def _by_target(asked: Call, method: AnyMethod, given: Simulate, about: ResourceAbout) -> Asked:
    assert method.target.resolve is not None
    if given.input is None:
        sparse = _Sparse(method, tenant_id=asked.tenant_id, about=about)
        resource = await method.target.resolve(asked, sparse)
        return Asked(checks=(Check(action=method.action, resource=resource),), mutates=method.mutates)
    tenant = {"tenant_id": asked.tenant_id} if "tenant_id" in method.input.model_fields else {}
    whole = parse_input(method.input, {**tenant, **given.input}, root="input")
    checks = [Check(action=method.action, resource=await method.target.resolve(asked, whole))]
    if method.further is not None:
        further = await method.further.resolve(asked, whole)
        checks.extend(Check(action=also.action, resource=also.resource) for also in further)
    return Asked(checks=tuple(checks), mutates=method.mutates)


def _method(call: Call, name: str) -> AnyMethod:
    known = call.provided(Registry).methods
    found = known.get(name) or known.get(f"iam:{name}")
    if found is None:
        raise invalid("method", f"there is no method {name}")
    return found


class _Sparse:
    """An input of which only the tenant and one id are known; refuses to be asked for more."""

    def __init__(self, method: AnyMethod, *, tenant_id: str, about: ResourceAbout) -> None:
        self._method = method
        self._tenant_id = tenant_id
        self._about = about

    def __getattr__(self, name: str) -> Any:
        field = self._method.input.model_fields.get(name)
        if name in {"tenant_id", "parent_id"}:
            return self._tenant_id
        if name == self._method.target.by and self._about.id is not None:
            return self._about.id
        if field is not None and not field.is_required():
            return field.get_default(call_default_factory=True)
        if name == self._method.target.by:
            raise invalid("resource.id", f"{self._method.name} is decided on {self._method.target.described}")
        raise invalid("input", f"what {self._method.name} is decided on depends on {camel(name)}; give the whole input")
