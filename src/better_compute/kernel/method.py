"""A method is a value.

Its name, what permission it needs and on what, its input, output, errors and transaction mode stand beside the function
that does the work. HTTP, the CLI, OpenAPI, the reference and the sweeps are all read from this value, so none of them
can say something else than what runs. `method(...)` is the only decorator of this code base.

Transaction modes:
* `read`: a read-only transaction; no audit row on success.
* `snapshot`: the same in REPEATABLE READ, for answers made of several statements.
* `write`: one read-write transaction, opened after the decision; audit and effects are written at its end.
* `statement`: the hot path; the function answers a `Statement`, which runs alone, without BEGIN and COMMIT.
* `manual`: a composite method; it gets no transaction and opens its own (see `composite.py`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from better_compute.base.errors import ErrorCode
from better_compute.base.models import Input, TenantInput, adapter_of
from better_compute.db.query import Query
from better_compute.kernel.call import Call
from better_compute.kernel.resources import Resource
from better_compute.kernel.targets import Further, Target

In = TypeVar("In", bound=Input)
Out = TypeVar("Out")

TransactionMode = Literal["read", "snapshot", "write", "statement", "manual"]
Surface = Literal["compute", "iam"]

ONE_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Statement(Generic[Out]):
    """One hot statement, ready to run, and how its row becomes the answer."""

    query: Query[Any]
    """Built once, at import, by `hot_query`."""
    params: dict[str, Any]
    answer: Callable[[Any], Out]


@dataclass(frozen=True, slots=True)
class Method(Generic[In, Out]):
    """One API call."""

    name: str
    """`flavors.create`: group and verb."""
    action: str
    """`compute:flavors:manage`, or empty when any authenticated caller may call."""
    target: Target
    run: Callable[[Call, In], Awaitable[Any]]
    input: type[In]
    output: Any
    """The dataclass (or generic of one) that goes out."""
    transaction: TransactionMode
    errors: frozenset[ErrorCode]
    """The codes this method may answer beyond those of the envelope."""
    described: str
    """The docstring: API reference, CLI help and page help at once."""
    further: Further | None = None
    """What the call is decided on beside its target; not for hot methods, which guard by versions alone."""
    makes: str | None = None
    """The id prefix of the object that a call makes."""
    planned: Callable[[Call, In], Awaitable[Resource]] | None = None
    """The resource that a create will put into the view; what a composite method decides further calls on."""
    stored: Callable[[Call, str], Awaitable[Out | None]] | None = None
    """Reads the object of an earlier call with the same idempotency key, by its id."""
    acts_in: tuple[str, ...] = ("tenant_id",)
    """The input fields that name tenants the call acts in; the tenant gate looks at all of them."""
    positional: tuple[str, ...] = ()
    """Fields that the CLI takes without a flag, in order."""
    max_body: int = ONE_MIB
    """The largest request body in bytes."""
    surface: Surface = "compute"
    """Under which path prefix it is served."""
    public: bool = False
    """Callable without a credential; for sign-in alone."""
    command: str = ""
    """Its words on the command line where they are not those of its name: `people create` for `identities.create`."""

    @property
    def path(self) -> str:
        """Where it is served: `/api/compute/flavors/create`; a name without a group is a path of one part."""
        return f"/api/{self.surface}/{self.name.replace('.', '/')}"

    @property
    def group(self) -> str:
        """`flavors`."""
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        """`create`."""
        return self.name.partition(".")[2]

    @property
    def mutates(self) -> bool:
        """Whether the call may change anything; the tenant gate and the audit trail treat it so."""
        return self.transaction in {"write", "statement", "manual"}

    def dump(self, answer: Any) -> bytes:
        """The answer as JSON bytes, without the fields that have no value."""
        return adapter_of(self.output).dump_json(answer, by_alias=True, exclude_none=True)


AnyMethod = Method[Any, Any]


def method(  # noqa: PLR0913  # a method is declared in one place, by keyword, and nowhere else
    name: str,
    *,
    action: str,
    target: Target,
    transaction: TransactionMode,
    errors: tuple[ErrorCode, ...] = (),
    further: Further | None = None,
    makes: str | None = None,
    planned: Callable[[Call, Any], Awaitable[Resource]] | None = None,
    stored: Callable[[Call, str], Awaitable[Any]] | None = None,
    acts_in: tuple[str, ...] = ("tenant_id",),
    positional: tuple[str, ...] = (),
    max_body: int = ONE_MIB,
    surface: Surface = "compute",
    public: bool = False,
    command: str = "",
) -> Callable[[Callable[[Call, In], Awaitable[Any]]], Method[In, Any]]:
    """Makes a method of a function `(call, input)`; input and output are read from its annotations."""

    def declare(run: Callable[[Call, In], Awaitable[Any]]) -> Method[In, Any]:
        hints = get_type_hints(run)
        output = hints.pop("return")
        if get_origin(output) is Statement:
            output = get_args(output)[0]
        model = hints["input"]
        assert issubclass(model, TenantInput) or public or surface == "iam", f"{name} does not say in which tenant"
        return Method(
            name=name,
            action=action,
            target=target,
            run=run,
            input=model,
            output=output,
            transaction=transaction,
            errors=frozenset(errors),
            described=(run.__doc__ or "").strip(),
            further=further,
            makes=makes,
            planned=planned,
            stored=stored,
            acts_in=acts_in,
            positional=positional,
            max_body=max_body,
            surface=surface,
            public=public,
            command=command,
        )

    return declare
