"""Whole plans as a reader sees them: a document, a fleet as it is, and the text that must come out.

Each case is a YAML file: `fleet` is the present fleet, itself written as a document, `document` what is wanted,
`options` how it is meant, `unnamed` what fleet did not name, `protected` which pools are, `archived` which flavors,
`lives` names that stood for objects that are gone. The text stands in `<case>.txt`, with the calls below it, as
somebody at a terminal sees it in `<case>.terminal.txt`, and for a pull request in `<case>.md`; set UPDATE_PLANS=1 to
write them anew, and read the difference.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from better_compute.base.items import ItemKind, Live, Wanted
from better_compute.modules.flavors.kind import FLAVOR
from better_compute.modules.fleet.commands.markdown import markdown_plan
from better_compute.modules.fleet.commands.reading import read_source
from better_compute.modules.fleet.commands.rendering import Style, render_calls, render_plan
from better_compute.modules.fleet.rules.document import read_document
from better_compute.modules.fleet.rules.fleet import Fleet, Snapshot
from better_compute.modules.fleet.rules.names import NameRow, Names
from better_compute.modules.fleet.rules.order import ordered_kinds
from better_compute.modules.fleet.rules.plan import Options, make_plan
from better_compute.modules.fleet.schema import FleetPlan
from better_compute.modules.pools.kind import OFFER, POOL
from better_compute.modules.quotas.kind import OWNER_QUOTA
from better_compute.modules.sites.kind import SITE

KINDS = ordered_kinds([kind.items for kind in (SITE, POOL, OWNER_QUOTA, OFFER, FLAVOR)])
CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
PLAN = TypeAdapter(FleetPlan)


def present(case: dict[str, Any]) -> Snapshot:
    """The case's fleet as it would be read from the database."""
    document = read_document(KINDS, {"version": 1, **case.get("fleet", {})}, root="fleet")
    live = {kind.name: [_live(kind, item, case) for item in document.wanted.get(kind.name, ())] for kind in KINDS}
    names = [
        NameRow(kind.name, kind.display(item.key), _ident(kind.name, item.key[-1], case), 1)
        for kind in KINDS
        if kind.has_ids
        for item in document.wanted.get(kind.name, ())
        if item.key[-1] not in case.get("unnamed", ())
    ]
    gone = [NameRow(row["kind"], row["name"], "gone", row["lives"]) for row in case.get("lives", ())]
    return Snapshot(
        tenant_id="root",
        live=live,
        names=Names([*names, *gone]),
        outside={"site": "root", "offer": {"acme": "active", "globex": "suspended", "lost": "deleted"}},
    )


def _live(kind: ItemKind[Any], item: Wanted, case: dict[str, Any]) -> Live:
    values = dict(item.values)
    for rule in kind.fields:
        if rule.refers is not None and rule.name in values:
            values[rule.name] = _ident(rule.refers, values[rule.name], case)
    if kind.name == "pool":
        values = {"sharing": "exclusive", "agent": "bcd", **values}
    protected = kind.name == "pool" and item.key[-1] in case.get("protected", ())
    return Live(
        ident=_ident(kind.name, item.key[-1], case) if kind.has_ids else item.key[-1],
        name="" if kind.named_by_fleet else item.key[-1],
        owner_id="" if kind.belongs_to is None else _ident(kind.belongs_to, item.key[0], case),
        values=values,
        archived=kind.display(item.key) in case.get("archived", ()),
        held="the pool is protected; lift that first with pools.update" if protected else "",
    )


def _ident(kind: str, name: str, case: dict[str, Any]) -> str:
    """The id of an object of the case: made of its name, or its name when fleet did not name it."""
    return name if name in case.get("unnamed", ()) else f"{kind}_{name}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_plan_reads_as_stored(path: Path) -> None:
    case = read_source(path).document
    options = Options(**{"prune": False, "allow_empty": False, **case.get("options", {})})
    document = read_document(KINDS, {"version": 1, **case["document"]})
    plan = make_plan(Fleet(KINDS, document, present(case)), options).view()
    shown = PLAN.dump_python(plan, mode="json", by_alias=True, exclude_none=True)
    texts = {
        ".txt": render_plan(shown) + ("\n" + render_calls(shown) if shown["calls"] else ""),
        ".terminal.txt": render_plan(shown, style=Style(colour=False, width=100)),
        ".md": markdown_plan(shown, tenant="root"),
    }
    for suffix, text in texts.items():
        stored = path.with_name(path.stem + suffix)
        if os.environ.get("UPDATE_PLANS") == "1":
            stored.write_text(text)
        assert stored.read_text() == text


def test_every_stored_text_has_its_case() -> None:
    stored = {path.name.partition(".")[0] for path in (Path(__file__).parent / "cases").iterdir()}
    assert stored == {path.stem for path in CASES}
