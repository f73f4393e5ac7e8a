"""Stand-ins for what a test does not want to be about.

`FakeIam` fills the IAM port with a few callers and plain grants, so that a module's tests say in one line who may do
what. It follows the port's rules (cross-tenant refusals, root override), and leaves policies to the real adapter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.iam import Check, Decision, Tenant, TenantStatus
from better_compute.kernel.principal import Caller


@dataclass
class FakeIam:
    """An IAM whose tokens are the callers' names.

    `root` is a service account of the root tenant that may do everything there; `acme` and `globex` may do everything
    in their own tenants; `nobody` of acme may do nothing; `admin` is a root administrator with a second factor.
    """

    root_tenant_id: str = "root"
    tenants: dict[str, Tenant] = field(
        default_factory=lambda: {
            "root": Tenant(id="root", status="active", name="Root", slug="root"),
            "acme": Tenant(id="acme", status="active", parent_id="root", name="Acme", slug="acme"),
            "globex": Tenant(id="globex", status="active", parent_id="root", name="Globex", slug="globex"),
        }
    )
    callers: dict[str, Caller] = field(
        default_factory=lambda: {
            "root": Caller(id="svc_root", kind="service", tenant_id="root", session_kind="api-key", session_id="key_r"),
            "acme": Caller(id="svc_acme", kind="service", tenant_id="acme", session_kind="api-key", session_id="key_a"),
            "globex": Caller(id="svc_globex", kind="service", tenant_id="globex", session_kind="api-key"),
            "nobody": Caller(id="usr_nobody", kind="user", tenant_id="acme", session_kind="user"),
            "admin": Caller(
                id="usr_admin", kind="user", tenant_id="root", session_kind="user", root_admin=True, mfa=True
            ),
        }
    )
    grants: dict[str, list[str]] = field(
        default_factory=lambda: {"svc_root": ["*"], "svc_acme": ["*"], "svc_globex": ["*"], "usr_admin": ["*"]}
    )
    """Globs of `action` or `action type/id`, by caller id."""
    denials: dict[str, list[str]] = field(default_factory=dict)
    features: set[tuple[str, str]] = field(default_factory=set)
    asked: list[tuple[str, Check]] = field(default_factory=list)
    """Every decision asked for, by caller id, for tests that count them."""

    def add(self, token: str, *, tenant_id: str, actions: Sequence[str]) -> Caller:
        """A further caller with these grants."""
        caller = Caller(id=f"svc_{token}", kind="service", tenant_id=tenant_id, session_kind="api-key")
        self.callers[token] = caller
        self.grants[caller.id] = list(actions)
        return caller

    def set_status(self, tenant_id: str, status: TenantStatus) -> None:
        self.tenants[tenant_id] = replace(self.tenants[tenant_id], status=status)

    async def authenticate(self, credential: str) -> Caller:
        caller = self.callers.get(credential)
        if caller is None:
            raise ComputeError(ErrorCode.UNAUTHENTICATED, "This token is not known.")
        return caller

    async def decide(self, caller: Caller, check: Check) -> Decision:
        self.asked.append((caller.id, check))
        if caller.tenant_id != check.resource.tenant_id:
            if caller.can_override:
                return Decision(allowed=True, reason="ROOT_OVERRIDE", root_override=True)
            return Decision(allowed=False, reason="TENANT_MISMATCH")
        if self._matches(self.denials.get(caller.id, ()), check.action, check.resource.name):
            return Decision(allowed=False, reason="explicit-deny")
        if self._matches(self.grants.get(caller.id, ()), check.action, check.resource.name):
            return Decision(allowed=True, reason="allowed")
        return Decision(allowed=False, reason="no-grant")

    async def decide_many(self, caller: Caller, checks: Sequence[Check]) -> list[Decision]:
        return [await self.decide(caller, check) for check in checks]

    async def decide_type(self, caller: Caller, tenant_id: str, action: str, resource_type: str) -> bool | None:
        if caller.tenant_id != tenant_id:
            return caller.can_override
        grants = self.grants.get(caller.id, ())
        if self.denials.get(caller.id):
            return None
        if any(" " not in grant and fnmatchcase(action, grant) for grant in grants):
            return True
        narrow = [grant for grant in grants if " " in grant and fnmatchcase(action, grant.split(" ")[0])]
        return None if any(grant.split(" ")[1].startswith(resource_type) for grant in narrow) else False

    async def feature_enabled(self, tenant_id: str, key: str) -> bool:
        return (tenant_id, key) in self.features

    async def tenant(self, tenant_id: str) -> Tenant:
        return self.tenants.get(tenant_id, Tenant(id=tenant_id, status="missing"))

    async def tenant_by_slug(self, slug: str) -> Tenant | None:
        return next((tenant for tenant in self.tenants.values() if tenant.slug == slug), None)

    async def subtree(self, tenant_id: str) -> list[Tenant]:
        below = [tenant.id for tenant in self.tenants.values() if tenant.parent_id == tenant_id]
        found = [self.tenants[tenant_id]]
        for child in below:
            found.extend(await self.subtree(child))
        return found

    async def inactive_tenants(self) -> Mapping[str, TenantStatus]:
        return {tenant.id: tenant.status for tenant in self.tenants.values() if tenant.status != "active"}

    @staticmethod
    def _matches(globs: Sequence[str], action: str, resource: str) -> bool:
        return any(fnmatchcase(action if " " not in glob else f"{action} {resource}", glob) for glob in globs)
