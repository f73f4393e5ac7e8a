"""What an operator may say about a daemon: flags of `bcd`, or the environment where a flag has a name there.

A control plane is reached by https. Plain http is for this machine's own loopback, since whoever listens in between
would read bearer tokens and tenants' user data; `--insecure-http` lifts that for a laboratory.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.link import is_loopback

DEFAULT_STATE: Final = Path("/var/lib/better-compute/bcd")
"""Where a daemon of a real host keeps what it remembers."""
DEFAULT_DATA: Final = Path("/var/lib/better-compute/guests")
"""Where a real host keeps guests' disks."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One daemon, or one of several simulated ones in a process."""

    url: str
    """The control plane, such as `https://compute.example.com`."""
    state: Path
    """The folder of this node alone."""
    poll_seconds: int = 30
    """How long one poll for desired state waits."""
    report_every_s: float = 10.0
    """The longest silence between two reports."""
    report_gap_s: float = 0.2
    """The shortest time between two reports."""
    observe_every_s: float = 5.0
    """How often the guests are looked at when nothing happens."""
    inventory_every_s: float = 60.0
    """How often the machine is read again."""
    step_limit_s: float = 300.0
    """After which a step counts as failed."""
    observe_limit_s: float = 60.0
    """After which a look at the guests counts as failed."""
    parallel_steps: int = 4
    """How many guests are worked on at once."""
    durable: bool = True
    """Whether what is remembered survives a power cut; simulated hosts need only survive their process."""


def checked_url(url: str, *, insecure_http: bool = False) -> str:
    """The URL without its last slash; INVALID_CONFIG when it is none, or would send secrets in the clear."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"--url is {url!r}; write it like https://compute.example.com or http://127.0.0.1:8080.",
        )
    if parsed.scheme == "http" and not insecure_http and not is_loopback(url):
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"--url is {url!r}, which sends tokens in the clear; use https, or --insecure-http in a laboratory.",
        )
    return url.rstrip("/")
