"""Folders for whole platforms."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder with the examples, as a clone has them; outside pytest's, which are closed to a database's own user."""
    with TemporaryDirectory(prefix="bc-story-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "examples").symlink_to(EXAMPLES)
        yield folder
