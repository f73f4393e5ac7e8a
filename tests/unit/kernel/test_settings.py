"""Settings are read once, and what is malformed is named."""

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.settings import SecretSources, read_secret_sources, read_settings

LONG, LONGER = "a" * 32, "b" * 40
VAULT = {
    "BETTER_COMPUTE_VAULT_ADDR": "https://vault.example.com:8200",
    "BETTER_COMPUTE_VAULT_TOKEN": "hvs.token",
    "BETTER_COMPUTE_VAULT_PREFIX": "/kv/compute/",
}


def test_earlier_secrets_are_kept_in_their_order_and_not_printed() -> None:
    environment = {"BETTER_COMPUTE_SECRET": LONG, "BETTER_COMPUTE_PREVIOUS_SECRETS": f" {LONGER}\n{LONG} "}
    settings = read_settings(environment, as_root=False)
    assert settings.previous_secrets == (LONGER.encode(), LONG.encode())
    assert LONG not in repr(settings)


def test_an_earlier_secret_is_as_long_as_any() -> None:
    with pytest.raises(ComputeError, match="BETTER_COMPUTE_PREVIOUS_SECRETS"):
        read_settings({"BETTER_COMPUTE_PREVIOUS_SECRETS": f"{LONG} short"}, as_root=False)


def test_sources_of_secrets_are_closed_unless_they_are_opened() -> None:
    assert read_secret_sources({}) == SecretSources()


def test_sources_of_secrets_are_read_and_the_token_is_not_printed() -> None:
    sources = read_secret_sources({**VAULT, "BETTER_COMPUTE_SECRET_ENV_PREFIX": "COMPUTE_"})
    assert sources == SecretSources(
        env_prefix="COMPUTE_",
        vault_address="https://vault.example.com:8200",
        vault_token="hvs.token",
        vault_prefix="kv/compute",
    )
    assert "hvs.token" not in repr(sources)


@pytest.mark.parametrize("missing", VAULT)
def test_a_vault_that_is_described_by_half_is_refused(missing: str) -> None:
    with pytest.raises(ComputeError, match=missing) as caught:
        read_secret_sources({name: value for name, value in VAULT.items() if name != missing})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BETTER_COMPUTE_SECRET_ENV_PREFIX", ""),
        ("BETTER_COMPUTE_SECRET_ENV_PREFIX", "A-B"),
        ("BETTER_COMPUTE_VAULT_ADDR", "vault.example.com"),
        ("BETTER_COMPUTE_VAULT_ADDR", "https://user:word@vault.example.com"),
        ("BETTER_COMPUTE_VAULT_ADDR", "http://[::1"),
        ("BETTER_COMPUTE_VAULT_PREFIX", "/"),
        ("BETTER_COMPUTE_VAULT_PREFIX", "kv/../other"),
    ],
)
def test_a_malformed_source_is_named(name: str, value: str) -> None:
    with pytest.raises(ComputeError, match=name):
        read_secret_sources({**VAULT, name: value})
