"""The methods as Python functions: `await compute.api.fleet.plan(credential, tenant_id="root", config=document)`.

The same object serves a deployment in this process and one behind a URL; only the function that carries the call
differs. Group and verb may be written in snake_case; the registry's names are camelCase.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Carry = Callable[[str, str, Mapping[str, Any]], Awaitable[Any]]
"""Brings a call (method name, credential, fields) to its answer."""


class Api:
    """All groups; an unknown one is noticed when a method of it is called."""

    def __init__(self, carry: Carry) -> None:
        self._carry = carry

    def __getattr__(self, group: str) -> "ApiGroup":
        return ApiGroup(self._carry, _camel(group))


class ApiGroup:
    """The methods of one group."""

    def __init__(self, carry: Carry, group: str) -> None:
        self._carry = carry
        self._group = group

    def __getattr__(self, verb: str) -> "ApiMethod":
        return ApiMethod(self._carry, f"{self._group}.{_camel(verb)}")


class ApiMethod:
    """One method; calling it is a call like any other, through the envelope."""

    def __init__(self, carry: Carry, name: str) -> None:
        self._carry = carry
        self.name = name

    async def __call__(self, credential: str, **fields: Any) -> Any:
        return await self._carry(self.name, credential, fields)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
