"""The schema of a migrated database as text that stays the same.

pg_dump of the embedded binaries writes it; what depends on the day, the machine or the version (comments, SET, owners)
is taken out, so that two databases with the same migrations have the same text, and a review sees what a migration
changes.
"""

import asyncio
import re
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.cluster import installed_binaries

_NOISE: Final = re.compile(
    r"^(--.*|SET .*;|SELECT pg_catalog\.set_config\(.*|\\(un)?restrict .*|COMMENT ON EXTENSION .*)$", re.MULTILINE
)


async def dump_schema(url: str) -> str:
    """The schema of the database at `url`; INVALID_CONFIG when pg_dump cannot read it."""
    words = ["--schema-only", "--no-owner", "--no-privileges", "--no-comments", f"--dbname={url}"]
    process = await asyncio.create_subprocess_exec(
        installed_binaries() / "pg_dump", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, problems = await process.communicate()
    if process.returncode != 0:
        raise ComputeError(ErrorCode.INVALID_CONFIG, f"pg_dump failed: {problems.decode(errors='replace').strip()}")
    return normalise(output.decode())


def normalise(dump: str) -> str:
    """Takes out what is not schema, and leaves one empty line between statements."""
    text = _NOISE.sub("", dump)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
