"""Reading the kernel's little text files, below a root that tests can choose.

The kernel answers some reads with an error instead of a text (the speed of a link that is down), and leaves out what
does not apply. Both are "nothing", never a failure: an inventory that lacks one number is better than none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tree:
    """A machine's files."""

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """The file or folder, whether or not it is there."""
        return self.root / name

    def text(self, name: str) -> str | None:
        """What the file says, without the white space around it."""
        return read_text(self.path(name))

    def folders(self, name: str, pattern: str) -> Iterator[tuple[int, Path]]:
        """Folders whose whole name matches, with the number that the pattern's group found, by number."""
        yield from numbered(self.path(name), pattern)


def read_text(path: Path) -> str | None:
    """What the file says; None when there is none or the kernel refuses."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path, *, base: int = 10) -> int | None:
    """The file's number; None for anything else. Negative numbers are how the kernel says that it does not know."""
    text = read_text(path)
    try:
        number = int(text or "", base)
    except ValueError:
        return None
    return number if number >= 0 else None


def numbered(folder: Path, pattern: str) -> Iterator[tuple[int, Path]]:
    """Entries of a folder whose whole name matches, with the number that the pattern's group found, by number."""
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return
    found = [(int(match[1]), match[0]) for name in names if (match := re.fullmatch(pattern, name))]
    for number, name in sorted(found):
        yield number, folder / name


def link_name(path: Path) -> str | None:
    """The last part of what a symbolic link points to."""
    try:
        return path.readlink().name
    except OSError:
        return None


def cpu_list(text: str | None) -> tuple[int, ...]:
    """The kernel's form of a set of numbers, such as `0-3,8`, in ascending order."""
    numbers: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def kib_of(text: str | None, label: str) -> int | None:
    """The bytes of one line of a `meminfo`, which counts in KiB."""
    match = re.search(rf"^(?:Node \d+ )?{label}:\s+(\d+) kB$", text or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None
