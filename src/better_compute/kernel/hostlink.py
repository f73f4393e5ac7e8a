"""Routes of the host daemon's link, as values.

A host is no caller of methods: what it sends is observation, and what it gets is desired state; neither is decided by
policy (design, section 9). Modules bring their routes in the manifest; the HTTP kit mounts them under `/api/host/v1/`
and does nothing but move bytes. Each route checks the host's own credential itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from better_compute.kernel.deployment import Deployment


@dataclass(frozen=True, slots=True)
class HostRequest:
    """What a host sent."""

    body: bytes
    token: str | None
    """The bearer token, without its scheme."""
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostRoute:
    """One route below `/api/host/v1/`."""

    path: str
    """`report`."""
    verb: Literal["GET", "POST"]
    run: Callable[[Deployment, HostRequest], Awaitable[bytes | None]]
    """Answers a JSON body, or None for 204; raises `ComputeError`."""
    described: str
    max_body: int = 1 << 20
    """The largest body in bytes; an inventory of a big host has about 200 KiB."""
