"""References have one spelling, and nothing here ever shows a value."""

import base64
import json
import pickle
from urllib.parse import quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import Input, parse_input
from better_compute.base.secrets import (
    HIDDEN,
    EnvironmentVariable,
    NamedSecret,
    Reference,
    SecretReference,
    SecretText,
    TenantSecret,
    VaultField,
    check_reference,
    masked,
    parse_reference,
    scrub,
)

ID = "sec_01k0000000000000000000000z"

segments = st.from_regex(r"\.?[A-Za-z0-9_-][A-Za-z0-9._-]{0,10}", fullmatch=True)
references: st.SearchStrategy[Reference] = st.one_of(
    st.builds(NamedSecret, st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)),
    st.builds(TenantSecret, st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,40}", fullmatch=True), st.just(ID)),
    st.builds(VaultField, segments, st.lists(segments, min_size=1, max_size=4).map("/".join), segments),
    st.builds(EnvironmentVariable, st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,40}", fullmatch=True)),
)
values = st.text(st.characters(exclude_characters="*", exclude_categories=["Cs"]), min_size=1)


class Config(Input):
    token: SecretReference


@given(references)
def test_a_reference_reads_as_it_is_written(reference: Reference) -> None:
    assert parse_reference(str(reference)) == reference


@given(st.one_of(st.text(), st.text().map("secret://{}".format), st.text().map("vault://{}".format)))
def test_a_text_is_no_reference_or_has_that_one_spelling(text: str) -> None:
    reference = parse_reference(text)
    assert reference is None or str(reference) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hetzner",
        "secret:/hetzner",
        "secret://",
        "secret://Hetzner",
        "secret://hetzner\n",
        "secret://acme/hetzner",
        f"secret://acme/{ID}/more",
        f"secret:///{ID}",
        "SECRET://hetzner",
        "vault://kv#key",
        "vault://kv/a",
        "vault://kv/a#",
        "vault://kv/../a#key",
        "vault://kv/./a#key",
        "vault://kv/...#key",
        "vault://kv//a#key",
        "vault://kv/a/#key",
        "vault://kv/%2e%2e/a#key",
        "vault://kv/a?version=1#key",
        "vault://kv/a#one#two",
        "env://",
        "env://1A",
        "env://A B",
        "env://A/B",
        "https://example.com",
        "secret://" + "a" * 600,
    ],
)
def test_what_is_malformed_is_no_reference(text: str) -> None:
    assert parse_reference(text) is None
    with pytest.raises(ComputeError) as caught:
        check_reference(text, path="config.token")
    assert caught.value.details["path"] == "config.token"


@given(st.from_regex(r"canary-[a-z0-9]{20}", fullmatch=True))
def test_a_value_in_the_wrong_field_is_never_repeated(value: str) -> None:
    for refuse in (
        lambda: check_reference(value, path="token"),
        lambda: parse_input(Config, {"token": value}),
        lambda: parse_input(Config, {"token": "secret://" + value * 50}),
    ):
        with pytest.raises(ComputeError) as caught:
            refuse()
        assert caught.value.code is ErrorCode.INVALID_INPUT
        assert value not in f"{caught.value} {caught.value.details}"
    assert masked(value) == HIDDEN


@given(references)
def test_a_reference_is_shown_as_it_is_and_accepted_as_input(reference: Reference) -> None:
    assert masked(str(reference)) == str(reference)
    assert parse_input(Config, {"token": str(reference)}).token == str(reference)


@given(values)
def test_a_value_prints_as_stars_and_is_not_pickled(value: str) -> None:
    secret = SecretText(value)
    assert secret.reveal() == value
    assert f"{secret} {secret!r} {[secret]}" == f"*** SecretText({HIDDEN}) [SecretText({HIDDEN})]"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


@given(st.text(), values, st.text())
def test_a_value_is_taken_out_of_a_text(before: str, value: str, after: str) -> None:
    for written in (value, json.dumps(value), repr(value), quote_plus(value)):
        assert value not in scrub(before + written + after, [SecretText(value)])


@given(st.text(), st.from_regex(r"[a-zA-Z0-9+/~?]{16,40}", fullmatch=True), st.text())
def test_a_value_is_taken_out_of_base64_and_hexadecimal(before: str, value: str, after: str) -> None:
    whole = f"{before}{value}{after}".encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(whole).decode()
        scrubbed = scrub(f"Basic {encoded}", [SecretText(value)])
        assert HIDDEN in scrubbed
        assert len(scrubbed) < len(encoded)
    assert value.encode().hex() not in scrub(whole.hex(), [SecretText(value)])


@given(st.text(), st.lists(values, max_size=3))
def test_a_text_without_values_stays_as_it_is(text: str, others: list[str]) -> None:
    assume(not any(other in text or other.encode().hex() in text for other in others))
    assume(all(len(other) > 6 for other in others))
    assert scrub(text, [SecretText(other) for other in others]) == text
