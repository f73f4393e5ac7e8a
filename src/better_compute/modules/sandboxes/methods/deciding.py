"""What calls about templates are decided on beside the template: every volume and every secret that they name.

The volumes are found by name here, before the call's transaction, and the write runs on what was found: a volume that
was deleted and made again under its name is another one, and has to be decided anew (seed 000). The envelope keeps them
as they were until the call commits; when they keep moving, it answers CONFLICT with the reason `volumes-changed`.
"""

from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.kernel.call import Call
from better_compute.kernel.resources import Resource
from better_compute.kernel.targets import Also, Further
from better_compute.modules.sandboxes.rules.templates import VOLUME, references
from better_compute.modules.sandboxes.schema import SandboxTemplateCreate, SandboxTemplateUpdate
from better_compute.modules.sandboxes.store.volumes import FIND_VOLUME_ID
from better_compute.modules.secrets.exports import SECRET, USE, naming_secrets

MANAGE: Final = "compute:sandboxes:manage"
READ: Final = "compute:sandboxes:read"

_SECRETS: Final = naming_secrets(lambda given: references(given.env, given.user_data))


async def _named(call: Call, given: SandboxTemplateCreate | SandboxTemplateUpdate) -> list[Also]:
    names = dict.fromkeys(mount.volume for mount in given.volumes or ())
    volumes = [Also(MANAGE, await _volume(call, name), moved="volumes-changed") for name in names]
    return [*volumes, *await _SECRETS.resolve(call, given)]


async def _volume(call: Call, name: str) -> Resource:
    """The volume of this name; NOT_FOUND in the words of whoever named it, whether or not it exists."""
    ident = await call.read(FIND_VOLUME_ID, tenant_id=call.tenant_id, name=name)
    if ident is None:
        raise not_found("sandbox volume", name)
    try:
        return await call.view(VOLUME, ident)
    except ComputeError as error:
        raise not_found("sandbox volume", name) if error.code is ErrorCode.NOT_FOUND else error from error


def decided_volumes(call: Call) -> dict[str, Resource]:
    """The volumes that this call was decided on, by name."""
    found: dict[str, Any] = {
        str(also.resource.attributes["name"]): also.resource for also in call.further if also.resource.type == VOLUME
    }
    return found


NAMED: Final = Further(
    checks=((MANAGE, VOLUME), (USE, SECRET)),
    described="each volume and each secret that it names",
    resolve=_named,
)
