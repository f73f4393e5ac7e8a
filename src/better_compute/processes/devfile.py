"""What `dev` made and `demo` needs: URL and tokens, in `.better-compute/dev.json`, readable by its owner only."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

DEV_FILE: Final = "dev.json"


@dataclass(frozen=True, slots=True)
class DevFile:
    """One development platform."""

    url: str
    root_token: str
    """An API key of the operators' service account in the root tenant."""
    tenant_id: str
    """The demo tenant."""
    tenant_token: str
    """An API key of the demo tenant's service account."""
    fleet: str
    """The document that was applied at the first start."""

    def at(self, url: str) -> "DevFile":
        """The same platform at another address."""
        return replace(self, url=url)

    def write(self, data: Path) -> None:
        """Keeps it, replacing what was there in one step."""
        fresh = data / f"{DEV_FILE}.new"
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(self), file, indent=2)
        fresh.replace(data / DEV_FILE)


def read_dev_file(data: Path) -> DevFile | None:
    """What an earlier start kept; None when there was none."""
    file = data / DEV_FILE
    return DevFile(**json.loads(file.read_text())) if file.exists() else None
