"""What the process says about itself in log lines.

Logs are structured, one JSON object per line, on standard error; every line of a call carries its request id. Nothing
here ever sees an input, a token or an answer. What is counted rather than told is in `metrics.py`.
"""

import sys
from typing import Final

import structlog

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
