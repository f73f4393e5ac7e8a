"""The wire: additive, strict, bounded, and the same bytes on both sides."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError
from better_compute.wire.document import Document, document_json, document_value, parse_document
from better_compute.wire.v1.desired import Desired, DesiredInstance, Image, InstanceSpec, Placement
from better_compute.wire.v1.enroll import Enrolled, Enrolment, Hello, Welcome, hello_bytes
from better_compute.wire.v1.inventory import Cpus, DataStore, HugePagePool, Inventory, NumaNode, inventory_hash
from better_compute.wire.v1.report import Condition, GuestUsage, Received, Report, ReportedInstance

SPEC = InstanceSpec(
    vcpu=8,
    memory_gib=32,
    disk_gib=200,
    gpus=("0000:3b:00.0",),
    image=Image(id="img_1", url="https://images.example.com/1", sha256="0" * 64),
    hostname="web-1",
    user_data="#cloud-config\npassword: s3cret",
    ssh_keys=("ssh-ed25519 AAAA me",),
    network="private",
    placement=Placement(cpus=(2, 3), mems=(0,), pinned=True, hugepage_size_bytes=2 << 20),
)
INVENTORY = Inventory(
    hostname="h1",
    machine_id="m",
    boot_id="b1",
    kernel="6.1",
    architecture="x86_64",
    cpus=Cpus(online=(0, 1)),
    memory_bytes=1 << 34,
    numa_nodes=(
        NumaNode(
            id=0,
            cpus=(0, 1),
            memory_bytes=1 << 34,
            huge_pages=(HugePagePool(size_bytes=2 << 20, total=10, free=4),),
        ),
    ),
    data_store=DataStore(path="/data", size_bytes=1 << 40, free_bytes=1 << 39),
)
DOCUMENTS: list[Document] = [
    Enrolment(token="t", public_key="A" * 43 + "=", daemon_version="1", hostname="h", labels={"bc.dev/cap.x": "true"}),
    Enrolled(node_id="node_1"),
    Hello(node_id="node_1", time=5, nonce="0" * 32, signature="A" * 86 + "=="),
    Welcome(token="t", expires_at=10, time=5),
    Desired(
        node_id="node_1",
        generation=3,
        instances=(
            DesiredInstance(id="inst_1", generation=2, reboots=1, spec=SPEC),
            DesiredInstance(id="inst_2", generation=3, deleted=True),
        ),
    ),
    INVENTORY,
    Report(
        boot_id="b1",
        sequence=1,
        daemon_version="1",
        generation=3,
        inventory_hash="0" * 64,
        inventory=INVENTORY,
        instances=(
            ReportedInstance(
                id="inst_1",
                generation=2,
                state="running",
                conditions=(Condition(type="GuestLost", reason="NotFound", message="gone"),),
                usage=GuestUsage(cpu_time_ms=1, memory_bytes=2),
            ),
        ),
    ),
    Received(accepted=True, inventory_known=False),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: type(document).__name__)
def test_a_document_survives_the_journey(document: Document) -> None:
    assert parse_document(type(document), document_json(document)) == document


def with_news(value: Any) -> Any:
    """The document as a newer writer would send it: with a field more everywhere."""
    if isinstance(value, dict):
        return {key: with_news(item) for key, item in value.items()} | {"bc.dev/news": "true"}
    return [with_news(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: type(document).__name__)
def test_fields_of_a_newer_writer_are_ignored(document: Document) -> None:
    newer = with_news(document_value(document))
    if "labels" in newer:
        newer["labels"].pop("bc.dev/news")
    assert parse_document(type(document), json.dumps(newer)) == document


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: type(document).__name__)
def test_names_on_the_wire_are_camel_case(document: Document) -> None:
    assert "_" not in "".join(keys_of(document_value(document)))


def keys_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in keys_of(item))]
    return [key for item in value for key in keys_of(item)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"nodeId":"n","generation":true}', "generation"),
        ('{"nodeId":"n","generation":"1"}', "generation"),
        ('{"nodeId":"n","generation":1.0}', "generation"),
        ('{"nodeId":"n","generation":0}', "generation"),
        ('{"nodeId":"n","generation":9007199254740993}', "generation"),
        ('{"nodeId":"n n","generation":1}', "nodeId"),
        ('{"node_id":"n","generation":1}', "nodeId"),
        ('{"nodeId":"n","generation":1,"instances":[{"id":"i","generation":1}]}', "instances[0]"),
        ('{"nodeId":"n","generation":1,"instances":[{"id":"i","generation":1,"power":"odd"}]}', "instances[0].power"),
        ("[]", ""),
        ("", ""),
    ],
)
def test_what_is_not_the_document_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(ComputeError) as refused:
        parse_document(Desired, text)
    assert refused.value.details["path"] == path


def test_an_id_listed_twice_is_refused() -> None:
    twice = {"id": "i", "generation": 1, "deleted": True}
    with pytest.raises(ComputeError, match="twice"):
        parse_document(Desired, json.dumps({"nodeId": "n", "generation": 1, "instances": [twice, twice]}))


def test_secrets_are_not_shown_by_accident() -> None:
    shown = repr(DOCUMENTS)
    assert "s3cret" not in shown
    assert "token=" not in shown


def test_problems_do_not_repeat_what_was_sent() -> None:
    spec = {"vcpu": 0, "memoryGiB": 1, "diskGiB": 1, "image": {"id": "i"}, "userData": ["s3cret"]}
    entry = {"id": "i", "generation": 1, "spec": spec}
    with pytest.raises(ComputeError) as refused:
        parse_document(Desired, json.dumps({"nodeId": "n", "generation": 1, "instances": [entry]}))
    assert "s3cret" not in str(refused.value.details)


def test_the_inventory_hash_is_blind_to_what_guests_use() -> None:
    value = document_value(INVENTORY)
    value["dataStore"]["freeBytes"] = 1
    value["numaNodes"][0]["hugePages"][0]["free"] = 0
    assert inventory_hash(parse_document(Inventory, json.dumps(value))) == inventory_hash(INVENTORY)


def test_the_inventory_hash_sees_everything_else() -> None:
    value = document_value(INVENTORY)
    value["numaNodes"][0]["hugePages"][0]["total"] = 11
    assert inventory_hash(parse_document(Inventory, json.dumps(value))) != inventory_hash(INVENTORY)


def test_the_signed_bytes_are_exactly_these() -> None:
    expected = b"better-compute host hello v1\n1790000000000\n00ff\nnode_1\n"
    assert hello_bytes(node_id="node_1", time=1_790_000_000_000, nonce="00ff") == expected


hellos = st.tuples(
    st.from_regex(r"[\x21-\x7e]{1,12}", fullmatch=True),
    st.integers(0, 2**53),
    st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
)


@given(hellos, hellos)
def test_two_different_hellos_never_sign_the_same_bytes(one: tuple[str, int, str], other: tuple[str, int, str]) -> None:
    first, second = (hello_bytes(node_id=node, time=time, nonce=nonce) for node, time, nonce in (one, other))
    assert (first == second) == (one == other)
