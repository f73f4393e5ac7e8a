"""How answers and refusals look on the wire (design, section 3).

Success is `{"data": …}`; a refusal is `{"error": {"code", "message", "details"?, "requestId"}}` with the status that
belongs to its code. Bodies are written here and nowhere else.
"""

import json
from typing import Any

from better_compute.base.errors import ComputeError


def success_body(dumped: bytes) -> bytes:
    """The body around an answer that is JSON already."""
    return b'{"data":' + dumped + b"}"


def error_body(error: ComputeError, request_id: str) -> bytes:
    """The body of a refusal."""
    told: dict[str, Any] = {"code": str(error.code), "message": error.message, "requestId": request_id}
    if error.details:
        told["details"] = error.details
    return json.dumps({"error": told}, separators=(",", ":"), default=str).encode()
