"""What the daemon remembers across restarts: who it is, what it should run, and what it found last.

The folder belongs to one daemon at a time (`lock`). `key` is the private key, made here and never copied out;
`node.json` is the answer to the enrolment; `memory.json` the newest desired state (it may hold tenants' user data,
hence 0600), the guests seen last, and how far the report sequence was reserved. Losing `memory.json` is harmless:
guests carry their own notes, and the server sends the whole desired state again.
"""

import base64
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.files import private_folder, read_if_there, write_private
from better_compute.wire.document import Count, Document, Ident, document_json, parse_document
from better_compute.wire.v1.desired import Desired

_log: Final = logging.getLogger("bcd")


class Node(Document):
    """Which node this host is, and whose."""

    node_id: Ident
    """The answer to the enrolment."""
    url: str
    """The control plane that gave it."""


class Memory(Document):
    """What the loop wants to know after a restart."""

    desired: Desired | None = None
    """The newest desired state that was accepted."""
    seen: tuple[Ident, ...] = ()
    """The guests that were there when last looked."""
    lost: dict[str, Count] = {}  # noqa: RUF012  # pydantic copies defaults
    """Guests that were gone without our doing, with the generation of their entry then."""
    sequence: Count = 0
    """No report had a sequence above this."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a hello is made of."""

    node_id: str
    key: Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The files of one daemon."""

    path: Path
    durable: bool = True
    """Whether `memory.json` survives a power cut; the key and the node always do."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps every other daemon out of the folder, until this one ends in whatever way; INVALID_STATE when taken."""
        private_folder(self.path)
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ComputeError(
                    ErrorCode.INVALID_STATE, f"Another bcd uses {self.path}; stop it or choose another --state."
                ) from error
            yield
        finally:
            os.close(handle)

    def key(self) -> Ed25519PrivateKey:
        """The host's key, made on first use; INVALID_STATE when the file is not a key."""
        path = self.path / "key"
        raw = read_if_there(path)
        if raw is None:
            private_folder(self.path)
            key = Ed25519PrivateKey.generate()
            write_private(path, _pem(key))
            return key
        try:
            key_found = serialization.load_pem_private_key(raw, password=None)
        except ValueError:
            key_found = None
        if not isinstance(key_found, Ed25519PrivateKey):
            raise ComputeError(
                ErrorCode.INVALID_STATE, f"{path} is no Ed25519 key; remove it and enroll this host as a new node."
            )
        return key_found

    def node(self) -> Node | None:
        """The enrolment's result; None before it."""
        raw = read_if_there(self.path / "node.json")
        return parse_document(Node, raw) if raw is not None else None

    def keep_node(self, node: Node) -> None:
        """Remembers the enrolment's result."""
        write_private(self.path / "node.json", document_json(node))

    def identity(self) -> Identity:
        """Who this host is; INVALID_STATE before it was enrolled."""
        node = self.node()
        if node is None:
            raise ComputeError(
                ErrorCode.INVALID_STATE, f"{self.path} belongs to no node yet; run `bcd enroll --url ... --token ...`."
            )
        return Identity(node_id=node.node_id, key=self.key())

    def memory(self) -> Memory:
        """What was remembered last; nothing when there is no file or it cannot be read."""
        raw = read_if_there(self.path / "memory.json")
        if raw is None:
            return Memory()
        try:
            return parse_document(Memory, raw)
        except ComputeError as error:
            _log.warning("forgetting what memory.json said: %s", error.message)
            return Memory()

    def keep_memory(self, memory: Memory) -> None:
        """Remembers it from now on."""
        write_private(self.path / "memory.json", document_json(memory), durable=self.durable)


def public_key_text(key: Ed25519PrivateKey) -> str:
    """The public half as it travels: 32 raw bytes in base64."""
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.b64encode(raw).decode("ascii")


def _pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
