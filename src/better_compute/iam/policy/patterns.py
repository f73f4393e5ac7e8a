"""Patterns of actions, resources and texts: anchored, case-sensitive, `*` for any run, `?` for one character.

There is no escape and no regular expression, so no pattern backtracks without bound. A list of patterns is compiled
once and sorted by what a test of it costs: exact texts become one set, patterns that end in their only `*` become
prefixes for one native call, and the rest are globs.

A glob is cut at its stars into pieces of fixed length. The first and the last are anchored; each one between is put at
the leftmost place after the one before it, which is always right for `*` and never needs a second try. Variables are
filled in for each decision and are literal; the pieces of globs without any are made once.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from better_compute.iam.policy.values import Context, scalar_text
from better_compute.iam.policy.variables import OPENING, parse_template
from better_compute.iam.policy.work import STEP, Work

_WILD: Final = re.compile(r"[*?]|\$\{")


@dataclass(frozen=True, slots=True)
class Patterns:
    """A compiled list of patterns, of which one must match."""

    exact: frozenset[str]
    prefixes: tuple[str, ...]
    globs: tuple["Glob", ...]

    def match(self, value: str, context: Context, work: Work) -> bool:
        """Whether some pattern matches the value; spends work on globs alone."""
        if value in self.exact or value.startswith(self.prefixes):
            return True
        return any(glob.match(value, context, work) for glob in self.globs) if self.globs else False

    def covers(self, prefix: str) -> bool:
        """True only when every text that starts with `prefix` matches, in any context; may miss one that does."""
        return any(prefix.startswith(start) for start in self.prefixes)

    def touches(self, prefix: str) -> bool:
        """False only when no text that starts with `prefix` matches, in any context; misses some for which it is so."""
        starts = (*self.prefixes, *(glob.start for glob in self.globs))
        return any(text.startswith(prefix) for text in self.exact) or any(
            start.startswith(prefix) or prefix.startswith(start) for start in starts
        )


def compile_patterns(patterns: Iterable[str], *, ignore_case: bool = False) -> Patterns:
    """Sorts the patterns by the cheapest test that decides them.

    With `ignore_case`, patterns and what variables stand for are lower-cased, and so are the names of variables: one
    with a capital never resolves. Lower-casing the value is up to the caller.
    """
    exact: set[str] = set()
    prefixes: set[str] = set()
    globs: list[Glob] = []
    for written in patterns:
        pattern = written.lower() if ignore_case else written
        start = _WILD.split(pattern, maxsplit=1)[0]
        if start == pattern:
            exact.add(pattern)
        elif not pattern[len(start) :].strip("*"):
            prefixes.add(start)
        else:
            globs.append(_compile_glob(pattern, start=start, ignore_case=ignore_case))
    return Patterns(frozenset(exact), tuple(sorted(prefixes)), tuple(globs))


class _Variable(NamedTuple):
    name: str


class _Piece(NamedTuple):
    """A stretch of a pattern without stars: literal runs at their offsets, and any one character everywhere else."""

    length: int
    runs: tuple[tuple[int, str], ...]

    def fits(self, value: str, at: int) -> bool:
        return all(value.startswith(text, at + offset) for offset, text in self.runs)

    def find(self, value: str, *, after: int, before: int, work: Work) -> int:
        """The leftmost place at or after `after` where the piece fits and ends by `before`; -1 when there is none."""
        if after + self.length > before:
            return -1
        if not self.runs:
            return after
        offset, first = self.runs[0]
        last = before - self.length + offset + len(first)
        hit = value.find(first, after + offset, last)
        while hit >= 0 and not self.fits(value, hit - offset):
            work.spend(STEP * len(self.runs))
            hit = value.find(first, hit + 1, last)
        return hit - offset if hit >= 0 else -1


_Parts: TypeAlias = tuple[str | _Variable, ...]
"""What a piece is made from: texts in which `?` is wild, and variables."""


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern that needs more than a comparison."""

    start: str
    """The literal text that every match starts with."""
    parts: tuple[_Parts, ...]
    """The pattern cut at its stars."""
    pieces: tuple[_Piece, ...] | None
    """The same, ready to match; None when variables must be filled in first."""
    ignore_case: bool
    """Whether what variables stand for is lower-cased."""

    def match(self, value: str, context: Context, work: Work) -> bool:
        """Whether the pattern matches the whole value; never when a variable resolves to nothing."""
        pieces = self.pieces or _fill(self.parts, context, ignore_case=self.ignore_case)
        return pieces is not None and _match_pieces(pieces, value, work)


def _compile_glob(pattern: str, *, start: str, ignore_case: bool) -> Glob:
    pieces: list[list[str | _Variable]] = [[]]
    for place, text in enumerate(parse_template(pattern)):
        if place % 2:
            pieces[-1].append(_Variable(text))
        else:
            before_star, *after_stars = text.split("*")
            pieces[-1].append(before_star)
            pieces.extend([after] for after in after_stars)
    parts = tuple(tuple(piece) for piece in pieces)
    ready = None if OPENING in pattern else _fill(parts, {}, ignore_case=ignore_case)
    return Glob(start, parts, ready, ignore_case)


def _fill(pieces: tuple[_Parts, ...], context: Context, *, ignore_case: bool) -> tuple[_Piece, ...] | None:
    filled = []
    for parts in pieces:
        length = 0
        runs = []
        for part in parts:
            chunks = _chunks(part, context, ignore_case=ignore_case)
            if chunks is None:
                return None
            for chunk in chunks:
                if chunk:
                    runs.append((length, chunk))
                length += len(chunk) + 1
            length -= 1
        filled.append(_Piece(length, tuple(runs)))
    return tuple(filled)


def _chunks(part: str | _Variable, context: Context, *, ignore_case: bool) -> list[str] | None:
    """Literal texts with one character of any kind between each two; None when a variable resolves to nothing."""
    if isinstance(part, str):
        return part.split("?")
    text = scalar_text(context.get(part.name))
    if text is None:
        return None
    return [text.lower() if ignore_case else text]


def _match_pieces(pieces: tuple[_Piece, ...], value: str, work: Work) -> bool:
    work.spend(len(value) + sum(piece.length + STEP * len(piece.runs) for piece in pieces))
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return first.length == len(value) and first.fits(value, 0)
    at, end = first.length, len(value) - last.length
    if end < at or not first.fits(value, 0) or not last.fits(value, end):
        return False
    for piece in pieces[1:-1]:
        place = piece.find(value, after=at, before=end, work=work)
        if place < 0:
            return False
        at = place + piece.length
    return True
