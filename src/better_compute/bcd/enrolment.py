"""Making a host a node, once.

The key is on the disk before the token is spent, so a daemon that dies before it read the answer asks again with the
same key and gets the same node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from better_compute import __version__
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.link import send_enrolment
from better_compute.bcd.state import Node, StateFolder, public_key_text
from better_compute.wire.v1.enroll import Enrolment


@dataclass(frozen=True, slots=True)
class Applicant:
    """What a host says about itself when it asks to become a node."""

    hostname: str
    """What the machine calls itself."""
    labels: Mapping[str, str]
    """The driver's capabilities."""


async def enroll_host(
    folder: StateFolder, *, url: str, token: str, applicant: Applicant, http: httpx2.AsyncClient
) -> str:
    """Spends the token and remembers the node id that it answers.

    INVALID_STATE when the folder belongs to a node already or is in use, UNAUTHENTICATED when the token is not good,
    UNAVAILABLE when nobody answered (then try again with the same token).
    """
    with folder.locked():
        node = folder.node()
        if node is not None:
            raise ComputeError(
                ErrorCode.INVALID_STATE,
                f"This host is {node.node_id} at {node.url} already; retire that node and remove {folder.path} first.",
            )
        enrolment = Enrolment(
            token=token,
            public_key=public_key_text(folder.key()),
            daemon_version=__version__,
            hostname=applicant.hostname,
            labels=dict(applicant.labels),
        )
        enrolled = await send_enrolment(http, url, enrolment)
        folder.keep_node(Node(node_id=enrolled.node_id, url=url))
        return enrolled.node_id
