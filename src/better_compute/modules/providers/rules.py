"""Pure rules of provider accounts: what a configuration may hold, which offers match, which servers nobody needs.

A configuration is checked against the fields that its provider declares. Whatever is wrong is told by path and never by
value, for a secret may have been pasted into any field.

What a provider lists may be late. So a server that is missing from a list is looked for by its id before anybody draws
a conclusion, and a server that is listed is an orphan only by what our own rows say, read after the list was.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.secrets import FORM, parse_reference
from better_compute.modules.providers.schema import HOLDER_LABEL, ConfigField, Offer, OfferQuery, Server

MISSING: Final = "missing"
"""The status of a server that the provider's list left out."""

UNKNOWN_GRACE_MS: Final = 600_000
"""How old a server with our label must be before it counts as nobody's although no row of ours ever named it."""

Problems = dict[str, str]
"""What is wrong, by field."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the platform knows of a server that it ordered."""

    holder: str
    account_id: str
    server_id: str | None
    status: str | None
    """As the provider's list had it last; `missing` when it was not in it."""
    released: bool


@dataclass(frozen=True, slots=True)
class Review:
    """What follows from one list of a provider's servers."""

    orphans: tuple[Server, ...] = ()
    """To be deleted, each looked at once more."""
    moved: tuple[tuple[str, str], ...] = ()
    """Holders of servers whose status is another one now, with that status."""
    found: tuple[str, ...] = ()
    """Holders whose server is listed and whose id we do not know."""


def config_problems(fields: Sequence[ConfigField], config: Mapping[str, Any]) -> Problems:
    """What is wrong with a whole configuration; empty when nothing is."""
    problems = change_problems(fields, config)
    for one in fields:
        if one.required and config.get(one.name) is None:
            problems[one.name] = f"this provider needs it: {one.described}"
    return problems


def change_problems(fields: Sequence[ConfigField], changes: Mapping[str, Any]) -> Problems:
    """What is wrong with the fields that are listed; null, which removes one, is never wrong here."""
    known = {one.name: one for one in fields}
    told = {name: _problem(known.get(name), known, value) for name, value in changes.items() if value is not None}
    return {name: problem for name, problem in told.items() if problem is not None}


def refuse(problems: Problems, *, root: str = "config") -> None:
    """INVALID_INPUT with every problem at its path, when there is one."""
    if not problems:
        return
    listed = [{"path": f"{root}.{name}", "message": message} for name, message in problems.items()]
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    raise ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{listed[0]['path']}: {listed[0]['message']}{more}",
        path=listed[0]["path"],
        problems=listed,
    )


def changed_config(current: Mapping[str, Any], changes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The configuration after a change of some fields, and which of them really changed."""
    merged = {**current, **changes}
    config = {name: value for name, value in sorted(merged.items()) if value is not None}
    fields = [name for name in sorted(changes) if not _same(current.get(name), changes[name])]
    return config, fields


def references_in(fields: Sequence[ConfigField], config: Mapping[str, Any]) -> dict[str, str]:
    """The references in a checked configuration, by field."""
    secret = {one.name for one in fields if one.kind == "secret"}
    return {name: value for name, value in config.items() if name in secret and isinstance(value, str)}


def matching(offers: Iterable[Offer], query: OfferQuery) -> list[Offer]:
    """The offers that have what is asked for, the cheapest first, then by id and region."""
    kept = [offer for offer in offers if _matches(offer, query)]
    return sorted(kept, key=lambda offer: (offer.price_per_hour, offer.id, offer.region))


def review(account_id: str, listed: Sequence[Server], known: Sequence[ServerFacts], *, now_ms: int) -> Review:
    """What follows from a list; `known` must have been read after it, with the holders of everything listed in it."""
    rows = {facts.holder: facts for facts in known}
    orphans, found = [], set()
    statuses: dict[str, str] = {}
    for server in listed:
        facts = rows.get(server.labels.get(HOLDER_LABEL, ""))
        if _is_orphan(server, facts, account_id=account_id, now_ms=now_ms):
            orphans.append(server)
        elif facts is not None and facts.account_id == account_id and not facts.released:
            if facts.server_id is None:
                found.add(facts.holder)
            else:
                statuses[facts.holder] = server.status
    ours = [one for one in known if one.account_id == account_id and one.server_id is not None and not one.released]
    moved = [(one.holder, statuses.get(one.holder, MISSING)) for one in ours]
    return Review(
        orphans=tuple(orphans),
        moved=tuple((holder, status) for holder, status in sorted(moved) if status != rows[holder].status),
        found=tuple(sorted(found)),
    )


def _is_orphan(server: Server, facts: ServerFacts | None, *, account_id: str, now_ms: int) -> bool:
    if server.status == "deleting":
        return False
    if facts is None:
        return HOLDER_LABEL in server.labels and now_ms - server.created_at > UNKNOWN_GRACE_MS
    if facts.account_id != account_id:
        return False
    return facts.released or facts.server_id not in {None, server.id}


def _problem(one: ConfigField | None, known: Iterable[str], value: Any) -> str | None:
    if one is None:
        return f"this provider has no such field; it has {', '.join(sorted(known)) or 'none'}"
    if one.kind == "secret":
        is_reference = isinstance(value, str) and parse_reference(value) is not None
        return None if is_reference else f"write {FORM}; never the value itself"
    if one.kind == "text":
        return None if isinstance(value, str) else "write a text"
    if one.kind == "boolean":
        return None if isinstance(value, bool) else "write true or false"
    if not isinstance(value, int) or isinstance(value, bool):
        return "write an integer"
    return None if one.least is None or value >= one.least else f"write an integer from {one.least}"


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _matches(offer: Offer, query: OfferQuery) -> bool:
    equal = (
        (query.kind, offer.kind),
        (query.region, offer.region),
        (query.gpu_model, offer.gpu_model),
        (query.available, offer.available),
    )
    least = (
        (query.min_vcpu, offer.vcpu),
        (query.min_memory_gib, offer.memory_gib),
        (query.min_disk_gib, offer.disk_gib),
        (query.min_gpus, offer.gpus or 0),
    )
    return all(wanted is None or wanted == has for wanted, has in equal) and all(
        wanted is None or wanted <= has for wanted, has in least
    )
