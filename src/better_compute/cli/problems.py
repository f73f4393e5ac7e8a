"""How a failed command ends: `CODE: message` on standard error and an exit status.

Exit 0 is success, 1 a refusal, 2 a usage error, 130 an interruption (design, section 3). With `--json` the refusal is
the same JSON object as over HTTP, on standard output.
"""

from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

HINTS: Final = {
    ErrorCode.INVALID_INPUT: "Correct what is named and run the command again; `--help` says what each flag takes.",
    ErrorCode.UNAUTHENTICATED: "Set BETTER_COMPUTE_TOKEN to a valid key, or sign in with `better-compute login`.",
    ErrorCode.ACCESS_DENIED: "See who you are with `better-compute sts get-caller-identity`; ask for what is missing.",
    ErrorCode.TENANT_INACTIVE: "Nothing can be done in this tenant until the platform's operator reactivates it.",
    ErrorCode.NOT_FOUND: "Look at what there is with the group's `list`, and at the tenant you named.",
    ErrorCode.METHOD_NOT_ALLOWED: "The command line and the platform are of different versions; compare them with "
    "`better-compute system version`.",
    ErrorCode.CONFLICT: "Look at what is there with the group's `list`; choose another name, or run the command again.",
    ErrorCode.INVALID_STATE: "Look at its state with the group's `get`, and wait for it or change it first.",
    ErrorCode.UNSUPPORTED: "This platform cannot do it; leave the option out, or ask the operator to enable it.",
    ErrorCode.RATE_LIMITED: "Make fewer calls at once, or ask the operator for a higher rate.",
    ErrorCode.PAYLOAD_TOO_LARGE: "Send less at once: split the document, or shorten what is longest.",
    ErrorCode.INVALID_CONFIG: "Correct the setting that is named and start again; docs/reference/settings.md has all.",
    ErrorCode.INTERNAL: "Nothing you did wrong; give the operator the request id, under which the log has the cause.",
    ErrorCode.QUOTA_EXCEEDED: "Delete what is not needed, or ask the pool's owner for more quota.",
    ErrorCode.CAPACITY_UNAVAILABLE: "Try a smaller flavor or another pool, or ask the operator to add nodes.",
    ErrorCode.CONFIG_DRIFT: "Plan again, review what changed, and apply the new plan.",
    ErrorCode.FLEET_DRIFTED: "Run `better-compute fleet apply` to bring the fleet back to the document.",
    ErrorCode.PLAN_BLOCKED: "Fix the blocked items in the document, or create new objects instead.",
    ErrorCode.UNAVAILABLE: "Nothing is lost; run the command again in a moment.",
}
"""What to do next, for every code."""


def error_lines(error: ComputeError) -> list[str]:
    """What a person reads on standard error."""
    problems: list[dict[str, str]] = error.details.get("problems", [])
    if len(problems) > 1:
        lines = [f"{error.code}: {len(problems)} problems, nothing was done."]
        lines.extend(f"  {problem['path']}: {problem['message']}" for problem in problems)
    else:
        lines = [str(error)]
    hint = HINTS.get(error.code)
    if hint is not None:
        lines.append(f"Hint: {hint}")
    return lines


def error_json(error: ComputeError) -> dict[str, Any]:
    """What a program reads on standard output."""
    told: dict[str, Any] = {"code": str(error.code), "message": error.message}
    if error.details:
        told["details"] = error.details
    return {"error": told}
