"""The IAM port over HTTP: Better IAM's protocol, which our embedded IAM speaks too (iam-facts, 8).

It asks with the caller's own credential what the caller may do, and with a credential of its own about tenants and
flags. Resources are resolved by the server, so whoever hosts this adapter mirrors them there first (`Mirror`). A
decision is never cached, and nothing but a proper answer counts as one: a timeout, a redirect, HTML or an unknown shape
is UNAVAILABLE, never a refusal, and only the server's own `Tenant not found` means that a tenant is missing.

This is the first piece of the adapter: what the conformance suite asks for. A mirror that keeps itself up to date, and
the inbox of the server's events, come with the issue that connects a deployment to a server.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, get_args

import httpx2

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.iam import Check, Decision, Tenant, TenantStatus
from better_compute.kernel.principal import Caller
from better_compute.kernel.resources import Resource

MAX_CHECKS: Final = 50
"""How many questions one `authorizeMany` may hold (iam-facts, 6.4)."""

MAX_TENANTS: Final = 10_000
"""The largest tree that is read; beyond it reading is refused (seed 004)."""

TIMEOUT_SECONDS: Final = 10.0

Mirror = Callable[[Iterable[Resource]], Awaitable[None]]
"""Has the server know these resources, as policies are to see them, before it is asked about them."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]{16,4096}", re.ASCII)
_MISSING_MESSAGE: Final = "Tenant not found"
_RANKS: Final[tuple[TenantStatus, ...]] = ("active", "pending", "suspended", "deleted", "missing")
_REFUSED: Final = Decision(allowed=False, reason="ACCESS_DENIED")
_NOT_AUTHENTICATED: Final = frozenset({"UNAUTHENTICATED", "INVALID_TOKEN", "SESSION_NETWORK_MISMATCH", "MFA_REQUIRED"})
_INACTIVE: Final = frozenset({"TENANT_INACTIVE", "TENANT_UNAVAILABLE"})


@dataclass(frozen=True, slots=True)
class _Credential:
    """A caller's token, kept where nothing prints it."""

    token: str = field(repr=False)


class _RefusedError(Exception):
    """The server's own refusal, in a proper envelope."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any]) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.details = details

    @property
    def is_missing_tenant(self) -> bool:
        return self.code == "NOT_FOUND" and self.message == _MISSING_MESSAGE


class RemoteIam:
    """A Better IAM server, or an embedded IAM, at a URL."""

    def __init__(
        self,
        url: str,
        *,
        credential: str,
        root_tenant_id: str,
        mirror: Mirror,
        base_path: str = "/api/iam",
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.root_tenant_id = root_tenant_id
        self._credential = credential
        self._mirror = mirror
        self._base = base_path.rstrip("/")
        self._http = httpx2.AsyncClient(
            base_url=url.rstrip("/"), timeout=TIMEOUT_SECONDS, follow_redirects=False, transport=transport
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def authenticate(self, credential: str) -> Caller:
        """The caller behind a bearer token; UNAUTHENTICATED, or TENANT_INACTIVE when its tenant is not active."""
        if _TOKEN.fullmatch(credential) is None:
            raise ComputeError(ErrorCode.UNAUTHENTICATED, "This is not a token.")
        try:
            told = await self._post("sts/getCallerIdentity", {}, token=credential)
        except _RefusedError as refusal:
            raise _as_ours(refusal) from refusal
        with _proper():
            kind = told["sessionKind"]
            return Caller(
                id=told["identityId"],
                kind="user" if told["identityKind"] == "user" else "service",
                tenant_id=told["tenantId"],
                session_id=told["sessionId"],
                session_kind="user" if kind == "user" else "api-key",
                root_admin=kind == "user" and told.get("rootAdmin", False),
                mfa=told["mfa"],
                authenticated_at=told["authenticatedAt"],
                name=told.get("name", ""),
                facts={"credential": _Credential(credential), "expiresAt": told["expiresAt"]},
            )

    async def decide(self, caller: Caller, check: Check) -> Decision:
        """Decides in the tenant of `check.resource`; never raises for a refusal."""
        await self._mirror((check.resource,))
        return await self._decide(caller, check)

    async def decide_many(self, caller: Caller, checks: Sequence[Check]) -> list[Decision]:
        """The same for many, in the order asked, fifty at a time."""
        await self._mirror(check.resource for check in checks)
        decisions: list[Decision] = []
        for start in range(0, len(checks), MAX_CHECKS):
            decisions += await self._decide_batch(caller, checks[start : start + MAX_CHECKS])
        return decisions

    async def decide_type(
        self,
        caller: Caller,
        tenant_id: str,
        action: str,  # noqa: ARG002  # the port's signature
        resource_type: str,  # noqa: ARG002  # the port's signature
    ) -> bool | None:
        """True for root override, False in another tenant; else None, for the policies are not ours to look at."""
        if caller.can_override:
            return True
        return False if caller.tenant_id != tenant_id else None

    async def feature_enabled(self, tenant_id: str, key: str) -> bool:
        """Whether a feature flag is on for a tenant; an unknown flag is off, and so is one of an unknown tenant."""
        try:
            told = await self._post("features/evaluate", {"tenantId": tenant_id, "keys": [key]})
        except _RefusedError as refusal:
            if refusal.is_missing_tenant:
                return False
            raise _as_ours(refusal) from refusal
        with _proper():
            return told["flags"].get(key, False) is True

    async def tenant(self, tenant_id: str) -> Tenant:
        """One tenant with its effective status; `missing` when the server says that there is none of that id."""
        record = await self._record(tenant_id)
        if record is None:
            return Tenant(id=tenant_id, status="missing")
        return _as_tenant(record, above=await self._status_above(record))

    async def tenant_by_slug(self, slug: str) -> Tenant | None:
        """The active tenant with this slug."""
        try:
            found = await self._post("tenants/lookup", {"slug": slug})
        except _RefusedError as refusal:
            if refusal.is_missing_tenant:
                return None
            raise _as_ours(refusal) from refusal
        with _proper():
            return await self.tenant(found["tenantId"])

    async def subtree(self, tenant_id: str) -> list[Tenant]:
        """A tenant and every tenant below it, with effective statuses; empty when there is no such tenant."""
        record = await self._record(tenant_id)
        if record is None:
            return []
        found = [_as_tenant(record, above=await self._status_above(record))]
        for parent in found:
            children = await self._call("tenants/listChildren", {"tenantId": parent.id})
            found += [_as_tenant(child, above=parent.status) for child in children]
            if len(found) > MAX_TENANTS:
                raise ComputeError(
                    ErrorCode.INVALID_STATE, f"More than {MAX_TENANTS} tenants below {tenant_id}; read smaller trees."
                )
        return found

    async def inactive_tenants(self) -> Mapping[str, TenantStatus]:
        """Every tenant that is suspended or deleted, for the tenant gate."""
        tree = await self.subtree(self.root_tenant_id)
        return {tenant.id: tenant.status for tenant in tree if tenant.status in ("suspended", "deleted")}

    async def _decide(self, caller: Caller, check: Check) -> Decision:
        asked = {"tenantId": check.resource.tenant_id, **_question(check)}
        try:
            told = await self._post("authorize", asked, token=_token_of(caller))
        except _RefusedError as refusal:
            return _decision_of(refusal)
        return _as_decision(told)

    async def _decide_batch(self, caller: Caller, checks: Sequence[Check]) -> list[Decision]:
        """One request when all are of one tenant; one fault fails such a batch as a whole, so then each alone."""
        tenants = {check.resource.tenant_id for check in checks}
        if len(tenants) == 1:
            asked = {"tenantId": tenants.pop(), "checks": [_question(check) for check in checks]}
            try:
                told = await self._post("authorizeMany", asked, token=_token_of(caller))
            except _RefusedError:
                pass
            else:
                with _proper():
                    assert len(told["results"]) == len(checks)
                    return [_as_decision(one) for one in told["results"]]
        return list(await asyncio.gather(*(self._decide(caller, check) for check in checks)))

    async def _record(self, tenant_id: str) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = await self._post("tenants/get", {"tenantId": tenant_id})
        except _RefusedError as refusal:
            if refusal.is_missing_tenant:
                return None
            raise _as_ours(refusal) from refusal
        return record

    async def _status_above(self, record: Mapping[str, Any]) -> TenantStatus:
        """The worst status on the way up; a suspension stands only in the row of the tenant that was suspended."""
        parent_id = record.get("parentId")
        return "active" if parent_id is None else (await self.tenant(parent_id)).status

    async def _call(self, path: str, fields: Mapping[str, Any]) -> Any:
        try:
            return await self._post(path, fields)
        except _RefusedError as refusal:
            raise _as_ours(refusal) from refusal

    async def _post(self, path: str, fields: Mapping[str, Any], *, token: str | None = None) -> Any:
        """The `data` of a proper answer; `_RefusedError` for a proper refusal, UNAVAILABLE for anything else."""
        headers = {
            "content-type": "application/json",
            "x-better-iam": "1",
            "authorization": f"Bearer {token or self._credential}",
        }
        try:
            response = await self._http.post(f"{self._base}/{path}", content=json.dumps(fields), headers=headers)
            answer = response.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise _unavailable(type(error).__name__) from error
        with _proper():
            if response.is_success:
                return answer["data"]
            told = answer["error"]
            refusal = _RefusedError(str(told["code"]), str(told["message"]), told.get("details", {}))
        if response.is_server_error:
            raise _unavailable(refusal.code)
        raise refusal


class _proper:  # noqa: N801  # reads as a word: with _proper():
    """An answer without the fields that it must have is no answer."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, (KeyError, TypeError, AttributeError, AssertionError)):
            raise _unavailable("an answer of another shape") from error


def _question(check: Check) -> dict[str, Any]:
    return {"action": check.action, "resource": {"type": check.resource.type, "id": check.resource.id}}


def _token_of(caller: Caller) -> str:
    credential = caller.facts["credential"]
    assert isinstance(credential, _Credential), "this caller was authenticated by another adapter"
    return credential.token


def _as_decision(told: Any) -> Decision:
    with _proper():
        override = told["reason"] == "ROOT_OVERRIDE"
        return Decision(allowed=told["allowed"] is True, reason=str(told["reason"]), root_override=override)


def _decision_of(refusal: _RefusedError) -> Decision:
    """What an error means for a decision: a refusal where the server said so, and no answer where it did not."""
    if refusal.is_missing_tenant:
        return Decision(allowed=False, reason="TENANT_MISSING")
    if refusal.code in _INACTIVE:
        return Decision(allowed=False, reason="TENANT_INACTIVE")
    if refusal.code in {"ACCESS_DENIED", "RESOURCE_MISMATCH", "TENANT_MISMATCH"}:
        return _REFUSED
    raise _as_ours(refusal)


def _as_tenant(record: Any, *, above: TenantStatus) -> Tenant:
    with _proper():
        own = record["status"]
        assert own in get_args(TenantStatus)
        return Tenant(
            id=record["id"],
            status=max(own, above, key=_RANKS.index),
            parent_id=record.get("parentId"),
            slug=record.get("slug"),
            name=record["name"],
        )


def _as_ours(refusal: _RefusedError) -> ComputeError:
    """The server's refusal in the codes of the port; what the port has no code for is UNAVAILABLE."""
    if refusal.code in _NOT_AUTHENTICATED:
        return ComputeError(ErrorCode.UNAUTHENTICATED, "The IAM does not know this token; sign in or use another.")
    if refusal.code in _INACTIVE:
        known = {name: refusal.details[name] for name in ("tenantId", "state") if name in refusal.details}
        return ComputeError(
            ErrorCode.TENANT_INACTIVE, "The tenant is not active; ask the platform's operator.", **known
        )
    return _unavailable(refusal.code)


def _unavailable(why: str) -> ComputeError:
    return ComputeError(ErrorCode.UNAVAILABLE, f"The IAM cannot answer ({why}); nothing was decided.")
