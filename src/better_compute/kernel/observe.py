"""What the process says about itself: log lines and counters.

Logs are structured, one JSON object per line, on standard error; every line of a call carries its request id. Counters
are plain integers in this process, read by `/metrics`. Nothing here ever sees an input, a token or an answer.
"""

import sys
from collections import Counter
from typing import Final

import structlog

from better_compute.base.errors import ErrorCode

log: Final = structlog.get_logger()


def configure_logging(*, json_lines: bool = True) -> None:
    """Sets up logging; done when a deployment is opened. Tracebacks never show values, which may be secrets."""
    renderer = structlog.processors.JSONRenderer() if json_lines else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def log_internal(method_name: str, request_id: str, error: BaseException) -> None:
    """The line that the operator finds by the request id of an INTERNAL answer."""
    log.error("internal error", method=method_name, request_id=request_id, exc_info=error)


class Counters:
    """Counts since the process started."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        """By method and code; `ok` for answers."""
        self.retries: Counter[str] = Counter()
        """Serialization failures and deadlocks tried again, by method."""
        self.reconciled: Counter[tuple[str, str]] = Counter()
        """Background steps by reconciler and outcome."""

    def call(self, method_name: str, code: ErrorCode | None) -> None:
        self.calls[method_name, "ok" if code is None else str(code)] += 1

    def retry(self, method_name: str) -> None:
        self.retries[method_name] += 1

    def step(self, reconciler: str, outcome: str) -> None:
        self.reconciled[reconciler, outcome] += 1

    def exposition(self) -> str:
        """The counters in Prometheus' text format."""
        lines = ["# TYPE better_compute_calls_total counter"]
        for (name, code), count in sorted(self.calls.items()):
            lines.append(f'better_compute_calls_total{{method="{name}",code="{code}"}} {count}')
        lines.append("# TYPE better_compute_retries_total counter")
        lines.extend(
            f'better_compute_retries_total{{method="{name}"}} {count}' for name, count in sorted(self.retries.items())
        )
        lines.append("# TYPE better_compute_reconciled_total counter")
        for (name, outcome), count in sorted(self.reconciled.items()):
            lines.append(f'better_compute_reconciled_total{{reconciler="{name}",outcome="{outcome}"}} {count}')
        return "\n".join(lines) + "\n"


COUNTERS: Final = Counters()
"""This process's counters."""
