"""Who may name which source, for every sort of reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.secrets import EnvironmentVariable, NamedSecret, Reference, TenantSecret, VaultField
from better_compute.modules.secrets.rules import Allowed, check_name, check_source, missing_of

ID = "sec_01k0000000000000000000000z"
OTHER = "sec_01k0000000000000000000000y"
OPEN = Allowed(root_tenant_id="root", env_prefix="COMPUTE_", vault_prefix="kv/compute", reserved={"COMPUTE_KEY"})
CLOSED = Allowed(root_tenant_id="root", env_prefix=None, vault_prefix=None, reserved=())


def refusal(reference: Reference, *, tenant_id: str = "root", allowed: Allowed = OPEN) -> ErrorCode | None:
    try:
        check_source(reference, tenant_id=tenant_id, allowed=allowed)
    except ComputeError as error:
        return error.code
    return None


@pytest.mark.parametrize("tenant_id", ["root", "acme"])
def test_a_tenant_names_its_own_secrets_wherever_the_deployment_is_closed(tenant_id: str) -> None:
    for reference in (NamedSecret("one"), TenantSecret(tenant_id, ID)):
        assert refusal(reference, tenant_id=tenant_id, allowed=CLOSED) is None


@given(st.sampled_from(["root", "acme", "globex"]), st.sampled_from(["root", "acme", "globex"]))
def test_a_secret_of_another_tenant_is_not_there(owner: str, tenant_id: str) -> None:
    expected = None if owner == tenant_id else ErrorCode.NOT_FOUND
    assert refusal(TenantSecret(owner, ID), tenant_id=tenant_id) is expected


@given(st.sampled_from([VaultField("kv", "compute/a", "key"), EnvironmentVariable("COMPUTE_TOKEN")]))
def test_what_the_server_can_read_is_for_the_root_tenant_alone(reference: Reference) -> None:
    assert refusal(reference) is None
    assert refusal(reference, tenant_id="acme") is ErrorCode.ACCESS_DENIED
    assert refusal(reference, allowed=CLOSED) is ErrorCode.ACCESS_DENIED


@pytest.mark.parametrize(
    ("reference", "may"),
    [
        (VaultField("kv", "compute", "key"), True),
        (VaultField("kv", "compute/a/b", "key"), True),
        (VaultField("kv", "computer", "key"), False),
        (VaultField("kv", "other", "key"), False),
        (VaultField("other", "compute/a", "key"), False),
        (EnvironmentVariable("COMPUTE_"), True),
        (EnvironmentVariable("COMPUTE_KEY"), False),
        (EnvironmentVariable("MY_COMPUTE_TOKEN"), False),
        (EnvironmentVariable("PATH"), False),
    ],
)
def test_a_source_stays_under_its_prefix(reference: Reference, may: bool) -> None:  # noqa: FBT001  # a table's column
    assert (refusal(reference) is None) is may


def test_references_without_a_secret_of_the_tenant_are_missing() -> None:
    wanted = [
        "secret://one",
        "secret://two",
        f"secret://acme/{ID}",
        f"secret://acme/{OTHER}",
        f"secret://globex/{ID}",
        "vault://kv/a#key",
        "env://A",
        "a value",
        "secret://two",
    ]
    missing = missing_of(wanted, tenant_id="acme", ids={ID}, names={"one"})
    assert missing == ["a value", f"secret://acme/{OTHER}", f"secret://globex/{ID}", "secret://two"]


def test_a_name_that_looks_like_an_id_is_refused() -> None:
    check_name("sec_one")
    with pytest.raises(ComputeError) as caught:
        check_name(ID)
    assert caught.value.details["path"] == "name"
