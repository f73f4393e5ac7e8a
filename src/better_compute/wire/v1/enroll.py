"""How a host becomes a node, and how it proves later that it is that node.

`POST enroll` with an `Enrolment`, no bearer; answers `Enrolled`. The token comes from an operator (`nodes.enroll`),
is valid for one hour and registers one key. The same token with the *same* key answers the same node id again, since
a daemon may die between sending and reading; with another key it is UNAUTHENTICATED. The private key never travels.

`POST hello` with a `Hello`, no bearer; answers `Welcome`: a bearer token for all other routes, valid one hour, which
the daemon renews after three quarters of that. The signature is Ed25519 over `hello_bytes(...)`. The server refuses
(UNAUTHENTICATED) an unknown or retired node, a wrong signature, a nonce that it saw within the allowed skew, and a time
that is more than `HELLO_SKEW_MS` away from its own; that last refusal carries its time as `details.time`, by which the
daemon signs once more, so that a host with a wrong clock can still be reached. Any number of tokens of one node may be
valid at once. UNAUTHENTICATED on another route means: say hello again.

Failures on all routes have the API's body, `{"error": {"code", "message", "details"?}}`; successes are the bare
document.
"""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from better_compute.wire.document import Count, Document, Ident, Labels, Name

ENROLL_PATH: Final = "enroll"
HELLO_PATH: Final = "hello"

HELLO_SKEW_MS: Final = 5 * 60 * 1000
"""How far the two clocks may be apart; also how long the server remembers nonces."""
TOKEN_LIFE_MS: Final = 60 * 60 * 1000
"""How long a bearer token is valid."""


class Enrolment(Document):
    """What a host sends once."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=512)] = Field(repr=False)
    """The one-time token that the operator was given."""
    public_key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]{43}=$")]
    """The 32 raw bytes of an Ed25519 public key in standard base64."""
    daemon_version: Name
    """The version of `bcd`."""
    hostname: Name
    """What the machine calls itself; a name for people, never an identity."""
    labels: Labels = Field(default={})
    """Capabilities, the same as in every report."""


class Enrolled(Document):
    """The answer to an enrolment."""

    node_id: Ident
    """Which node this host is from now on."""


class Hello(Document):
    """A signed request for a bearer token."""

    node_id: Ident
    """The answer to the enrolment."""
    time: Count
    """Epoch milliseconds by the host's clock, corrected when the server asked for it."""
    nonce: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    """16 random bytes in lower-case hexadecimal, never used before."""
    signature: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]{86}==$")]
    """The 64 bytes of the Ed25519 signature in standard base64."""


class Welcome(Document):
    """The answer to a hello."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=512)] = Field(repr=False)
    """Goes into `Authorization: Bearer` of reports and polls."""
    expires_at: Count
    """Epoch milliseconds by the server's clock."""
    time: Count
    """The server's clock when it answered: the token's life is counted from here, whatever the host's clock says."""


def hello_bytes(*, node_id: str, time: int, nonce: str) -> bytes:
    """What is signed: a fixed first line, then time, nonce and node id, one per line, in ASCII.

    No field can hold a line break, so two different hellos never have the same bytes; the first line keeps the
    signature from being taken for one over anything else.
    """
    return f"better-compute host hello v1\n{time}\n{nonce}\n{node_id}\n".encode("ascii")
