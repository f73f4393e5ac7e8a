"""Every change of the IAM writes its row of the audit trail, and no secret gets into it, into logs or into errors.

One story makes each mutating call of the registry once; a method that is added without a step here fails the test.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ComputeError
from better_compute.builtin import IAM_MODULES
from better_compute.kernel.method import AnyMethod
from better_compute.modules.projects.module import MODULE as PROJECTS
from better_compute.testing.canary import columns_with, texts_with
from better_compute.testing.embedded import PASSWORD, EmbeddedPlatform, embedded_platform

MUTATIONS = {item.name: item for module in IAM_MODULES for item in module.methods if item.mutates}
DOCUMENT = {"version": 1, "statements": [{"effect": "allow", "actions": ["*"], "resources": ["*"]}]}


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform(PROJECTS) as opened:
        yield opened


class Story:
    """Makes calls in one tenant, and after each looks for its row."""

    def __init__(self, platform: EmbeddedPlatform) -> None:
        self.platform = platform
        self.told: set[str] = set()
        self.secrets: list[str] = []
        self.problems: list[str] = []

    async def call(self, name: str, /, *, token: str | None = None, **fields: Any) -> Any:
        """One call; its row must name action, resource, caller and request."""
        before = await self._rows(name)
        fields = fields if "parent_id" in fields or name.startswith("auth.") else {"tenant_id": "acme", **fields}
        answer = await self.platform.call(name, token=token, **fields)
        rows = (await self._rows(name))[len(before) :]
        self._check(MUTATIONS[name], rows)
        self.told.add(name)
        return answer

    def _check(self, method: AnyMethod, rows: list[tuple[Any, ...]]) -> None:
        action = "auth:session:create" if method.name == "auth.signIn" else method.action
        if [row[:2] for row in rows] != [(action, "allow")]:
            self.problems.append(f"{method.name} wrote {rows}")
        elif not all(row[2].startswith("iam/") and row[3] and row[4] for row in rows):
            self.problems.append(f"{method.name} names nothing in {rows}")

    async def _rows(self, name: str) -> list[tuple[Any, ...]]:
        return await self.platform.rows(
            f"select action, outcome, resource, actor_id, request_id from audit where method = '{name}' order by id"
        )


async def tell(story: Story, project_id: str) -> None:
    """Every mutating call once."""
    await story.call("tenants.create", parent_id="acme", id="lab", name="Lab", type="project")
    await story.call("tenants.update", name="Acme GmbH")
    await story.call("tenants.setSlug", slug="acme-gmbh")
    await story.call("tenants.setBoundary", boundary=DOCUMENT)
    await story.call("tenants.setStatus", tenant_id="lab", status="suspended")
    await story.call("tenants.delete", tenant_id="lab")
    await tell_of_grants(story, project_id)
    await tell_of_flags(story)
    await tell_of_people(story)


async def tell_of_grants(story: Story, project_id: str) -> None:
    policy = await story.call("policies.create", name="p", document=DOCUMENT)
    role = await story.call("roles.create", name="r", policy_ids=[policy.id])
    account = await story.call("serviceAccounts.create", name="s")
    group = await story.call("groups.create", name="g")
    member = {"group_id": group.id, "identity_id": account.id}
    await story.call("groups.addMember", **member)
    await story.call("groups.removeMember", **member)
    binding = await story.call("bindings.create", role_id=role.id, subject_id=group.id)
    relation = {"type": "compute-project", "id": project_id, "relation": "member", "subject_id": account.id}
    relationship = await story.call("relationships.create", **relation)
    await story.call("relationships.delete", relationship_id=relationship.id)
    await story.call("bindings.delete", binding_id=binding.id)
    await story.call("groups.delete", group_id=group.id)
    await story.call("roles.delete", role_id=role.id)
    await story.call("policies.delete", policy_id=policy.id)
    key = await story.call("credentials.create", identity_id=account.id, scopes=["iam:tenants:read"])
    await story.call("credentials.update", credential_id=key.credential_id, name="ci")
    rotated = await story.call("credentials.rotate", credential_id=key.credential_id)
    await story.call("credentials.revoke", credential_id=rotated.credential_id)
    story.secrets += [key.token, rotated.token]
    await story.call("identities.setBoundary", identity_id=account.id, boundary=DOCUMENT)
    await story.call("serviceAccounts.setStatus", identity_id=account.id, status="disabled")


async def tell_of_flags(story: Story) -> None:
    await story.call("features.create", tenant_id="root", key="one", tenant_overridable=True)
    await story.call("features.update", tenant_id="root", key="one", description="d")
    await story.call("features.setTarget", tenant_id="root", key="one", target_tenant_id="acme", value=True)
    await story.call("features.setOverride", key="one", value=False)
    await story.call("features.delete", tenant_id="root", key="one")


async def tell_of_people(story: Story) -> None:
    platform = story.platform
    first, second = "the first canary 1", "the second canary 2"
    person = await story.call("identities.create", email="ann@example.com", name="Ann")
    ident = {"tenant_id": "acme", "identity_id": person.id}
    await story.call("auth.setPassword", **ident, password=first)
    session = await story.call("auth.signIn", tenant_id="acme", email="ann@example.com", password=first)
    enrolled = await story.call("auth.enrollTotp", token=session.token)
    await story.call("auth.confirmTotp", token=session.token, code=platform.code(enrolled.secret))
    await story.call("auth.changePassword", token=session.token, current_password=first, password=second)
    proof = {"password": second, "mfa_code": platform.code(enrolled.secret)}
    again = await story.call("auth.signIn", tenant_id="acme", email="ann@example.com", **proof)
    await story.call("auth.signOut", token=again.token)
    await story.call("auth.removeTotp", **ident)
    await story.call("identities.setStatus", identity_id=person.id, status="disabled")
    story.secrets += [first, second, session.token, again.token, enrolled.secret]
    admin, email = await platform.make_person("root")
    story.secrets.append(await platform.enroll(await platform.sign_in("root", email)))
    await story.call("root.setAdministrator", tenant_id="root", identity_id=admin, root_admin=True)


async def test_every_change_is_audited_and_no_secret_is_kept_in_clear(
    platform: EmbeddedPlatform, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await platform.call("tenants.create", parent_id="root", id="acme", name="Acme")
    owner = await platform.make_key("acme", role="owner")
    create = platform.app.registry.method("projects.create")
    project = await platform.app.envelope.call(create, owner.token, {"tenant_id": "acme", "name": "research"})
    story = Story(platform)
    await tell(story, project.id)
    assert not story.problems
    assert story.told == set(MUTATIONS), "a method without a step in this story"
    story.secrets += [platform.token, owner.token, PASSWORD, platform.administrator.totp_secret]
    printed = capfd.readouterr()
    for secret in story.secrets:
        assert not columns_with(platform.database.settings.url, secret)
        assert not texts_with([caplog.text, printed.out, printed.err], secret)


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("auth.signIn", {"tenant_id": "acme", "email": "x@example.com", "password": "{canary}"}),
    ("auth.signIn", {"tenant_id": "acme", "email": "x@example.com", "password": "{canary}", "surprise": "{canary}"}),
    ("auth.signIn", {"tenant_id": "acme", "email": "{canary}", "password": "p", "mfa_code": "{canary}"}),
    ("auth.setPassword", {"tenant_id": "acme", "identity_id": "usr_x", "password": "{canary}"}),
    ("auth.setPassword", {"tenant_id": "acme", "identity_id": 1, "password": "{canary}"}),
    ("auth.changePassword", {"current_password": "{canary}", "password": "{canary}"}),
    ("auth.confirmTotp", {"code": "{canary}"}),
]
"""Calls that are refused, with a secret in them."""


@pytest.mark.parametrize(("name", "fields"), WRONG, ids=[name for name, _ in WRONG])
async def test_a_refusal_repeats_no_secret(
    platform: EmbeddedPlatform, caplog: pytest.LogCaptureFixture, name: str, fields: dict[str, Any]
) -> None:
    caplog.set_level("DEBUG")
    canary = "canary-of-fourteen"
    given = json.loads(json.dumps(fields).replace("{canary}", canary))
    with pytest.raises(ComputeError) as caught:
        await platform.call(name, **given)
    told = json.dumps([caught.value.message, caught.value.details])
    assert not texts_with([told, caplog.text], canary)
    assert not columns_with(platform.database.settings.url, canary)


async def test_a_token_that_is_refused_is_told_nowhere(
    platform: EmbeddedPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    token = "bc_key_" + "canary" * 8 + "A"
    with pytest.raises(ComputeError) as caught:
        await platform.call("sts.getCallerIdentity", token=token)
    assert not texts_with([str(caught.value), json.dumps(caught.value.details), caplog.text], token)
