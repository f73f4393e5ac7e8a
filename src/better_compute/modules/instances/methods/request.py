"""What a request for an instance becomes, whoever will run it: the resource it is decided on, rows and answers."""

import json
from typing import Any

from better_compute.kernel.call import Call
from better_compute.kernel.resources import Resource
from better_compute.modules.flavors.exports import charges
from better_compute.modules.instances.methods.basis import Basis
from better_compute.modules.instances.methods.change import TYPE
from better_compute.modules.instances.rules.lifecycle import Move
from better_compute.modules.instances.schema import Instance, InstanceChanged, InstanceCreate


def requested_resource(call: Call, input: InstanceCreate, basis: Basis) -> Resource:
    """The instance as it will be, with its shape; its parent is the pool."""
    flavor, pool = basis.flavor, basis.pool
    attributes: dict[str, Any] = {
        "poolId": flavor.pool_id,
        "flavor": flavor.name,
        "name": input.name,
        "vcpu": flavor.vcpu,
        "memoryGiB": flavor.memory_gib,
        "diskGiB": flavor.disk_gib,
        "gpus": flavor.gpus,
        "region": pool.attributes.get("region"),
    }
    if input.project_id is not None:
        attributes["projectId"] = input.project_id
    if flavor.gpus:
        attributes["gpuModel"] = pool.attributes.get("gpuModel")
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        parent_type="compute-pool",
        parent_id=flavor.pool_id,
        attributes=attributes,
    )


def requested_row(call: Call, input: InstanceCreate, basis: Basis) -> dict[str, Any]:
    """The arguments that every admission has: the row, what it rests on, and what is charged."""
    flavor = basis.flavor
    amounts = charges(vcpu=flavor.vcpu, memory_gib=flavor.memory_gib, disk_gib=flavor.disk_gib, gpus=flavor.gpus)
    sealer = call.deployment.sealer
    return {
        "id": call.object_id,
        "tenant_id": call.tenant_id,
        "pool_id": flavor.pool_id,
        "pool_version": basis.pool.version,
        "owns_pool": basis.owns_pool,
        "holders": list(basis.holders),
        "project_id": input.project_id,
        "name": input.name,
        "flavor_id": flavor.id,
        "flavor_version": flavor.version,
        "flavor": flavor.name,
        "shape": [flavor.vcpu, flavor.memory_gib, flavor.disk_gib, flavor.gpus],
        "image_id": basis.image.id,
        "user_data": None
        if input.user_data is None
        else sealer.seal(input.user_data, purpose=f"user-data:{call.object_id}"),
        "ssh_keys": input.ssh_keys,
        "labels": json.dumps(input.labels),
        "created_by": call.caller.id,
        "charge_resources": list(amounts),
        "charge_amounts": list(amounts.values()),
    }


def requested_event(call: Call, input: InstanceCreate, admitted: Move) -> InstanceChanged:
    """What `instance.created` tells."""
    return InstanceChanged(
        instance_id=call.object_id,
        pool_id=input.pool_id,
        name=input.name,
        state=admitted.state,
        reason=admitted.reason,
        message=admitted.message,
    )


def requested_answer(call: Call, input: InstanceCreate, basis: Basis, admitted: Move, *, created_at: int) -> Instance:
    """The instance as its tenant first sees it."""
    flavor = basis.flavor
    return Instance(
        id=call.object_id,
        pool_id=flavor.pool_id,
        name=input.name,
        state=admitted.state,
        reason=admitted.reason,
        message=admitted.message,
        flavor=flavor.name,
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        disk_gib=flavor.disk_gib,
        gpus=flavor.gpus,
        image_id=basis.image.id,
        labels=dict(input.labels),
        created_at=created_at,
        changed_at=created_at,
        project_id=input.project_id,
    )
