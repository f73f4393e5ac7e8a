"""Every kind of the registry: its declaration is whole, and what it exports plans empty."""

import json
from pathlib import Path
from typing import Any

import pytest

from better_compute.base.errors import ComputeError
from better_compute.base.items import ItemKind
from better_compute.builtin import MODULES, default
from better_compute.modules.fleet.rules.document import read_document
from better_compute.modules.fleet.rules.order import ordered_kinds
from better_compute.modules.fleet.rules.reference import fields_page
from better_compute.modules.fleet.schema import FRAME
from better_compute.testing.harness import harness

EXAMPLE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "examples" / "fleet.json").read_text())
REGISTRY = default().registry
KINDS = [kind.items for kind in REGISTRY.kinds.values()]
DISK = {"url": "https://images.invalid/disk.qcow2", "sha256": "0" * 64}
SEED_ORDER = ["providerAccount", "site", "pool", "ownerQuota", "offer", "flavor", "sandboxTemplate"]
"""The order of creates in seed 000, Plan."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_of_an_item_is_compared_or_names_it(kind: ItemKind[Any]) -> None:
    ruled = {rule.name for rule in kind.fields}
    modelled = {info.alias for info in kind.item.model_fields.values()}
    assert ruled | set(kind.key_fields) == modelled
    assert not ruled & set(kind.key_fields)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_is_described(kind: ItemKind[Any]) -> None:
    assert all(kind.described(rule.name) for rule in kind.fields)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_can_do_what_its_fields_promise(kind: ItemKind[Any]) -> None:
    assert (kind.update is None) == all(rule.fixed for rule in kind.fields)
    assert (kind.delete is None) == bool(kind.kept)
    assert (kind.belongs_to is None) == (kind.belongs_by is None and kind.inner is None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_default_is_its_own_canonical_spelling(kind: ItemKind[Any]) -> None:
    for rule in kind.fields:
        if rule.name in kind.defaults:
            assert rule.normal(kind.defaults[rule.name]) == kind.defaults[rule.name]


NULLABLE = [
    (kind, rule.name)
    for kind in KINDS
    if not kind.is_map
    for rule in kind.fields
    if kind.absent(rule.name) != "required"
]


@pytest.mark.parametrize(("kind", "name"), NULLABLE, ids=lambda given: getattr(given, "name", given))
def test_null_and_leaving_out_mean_what_the_reference_says(kind: ItemKind[Any], name: str) -> None:
    document = json.loads(json.dumps(EXAMPLE))
    owner = next(item for item in document[kind.list_name] if kind.inner is None or item.get(kind.inner))
    item = owner if kind.inner is None else owner[kind.inner][0]
    item.pop(name, None)
    (wanted, *_) = read_document(KINDS, document).wanted[kind.name]
    assert wanted.values.get(name) == (kind.defaults[name] if kind.absent(name) == "default" else None)
    assert (name in wanted.values) == (kind.absent(name) == "default")
    item[name] = None
    (rule,) = [rule for rule in kind.fields if rule.name == name]
    if rule.removable:
        (wanted, *_) = read_document(KINDS, document).wanted[kind.name]
        assert (name, None) in wanted.values.items()
        return
    with pytest.raises(ComputeError) as caught:
        read_document(KINDS, document)
    assert caught.value.details["path"].endswith(f".{name}")


def test_kinds_are_ordered_as_in_the_seed() -> None:
    known = [kind.name for kind in ordered_kinds(KINDS) if kind.name in SEED_ORDER]
    assert known == [name for name in SEED_ORDER if name in known]


def test_the_frame_knows_the_lists_of_the_kinds_it_names() -> None:
    by_name = {kind.name: kind for kind in KINDS}
    for frame in FRAME:
        if frame.kind in by_name:
            assert by_name[frame.kind].list_name == frame.name
            assert by_name[frame.kind].key_fields == frame.key


def test_the_reference_has_every_kind_and_field() -> None:
    page = fields_page(KINDS)
    for kind in KINDS:
        assert f"## {kind.name}\n" in page
        assert all(f"| `{rule.name}` |" in page for rule in kind.fields)


async def test_the_example_has_every_kind_and_is_as_written_once_applied() -> None:
    async with harness(*MODULES) as h:
        for template in EXAMPLE["sandboxTemplates"]:
            await h.call("images.create", tenant_id="root", name=template["imageId"], format="qcow2", source=DISK)
            for mount in template["volumes"]:
                await h.call("sandboxVolumes.create", tenant_id="root", name=mount["volume"], size_gib=1)
        planned = await h.call("fleet.plan", tenant_id="root", config=EXAMPLE)
        assert {change.kind for change in planned.changes} == set(REGISTRY.kinds)
        await h.call("fleet.apply", tenant_id="root", config=EXAMPLE, plan_hash=planned.plan_hash)
        again = await h.call("fleet.plan", tenant_id="root", config=EXAMPLE, prune=True)
        assert (again.calls, again.blocked) == ([], False)
        exported = await h.call("fleet.export", tenant_id="root")
        same = await h.call("fleet.plan", tenant_id="root", config=exported.config, prune=True)
        assert (same.calls, same.blocked) == ([], False)
