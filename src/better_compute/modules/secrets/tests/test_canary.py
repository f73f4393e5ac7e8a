"""A value that was put into a secret is found nowhere but in its sealed column, which does not show it."""

import json
from dataclasses import asdict

import psycopg
import pytest

from better_compute.base.errors import ErrorCode
from better_compute.kernel.metrics import COUNTERS
from better_compute.kernel.observe import log_internal
from better_compute.modules.secrets.exports import resolve
from better_compute.modules.secrets.module import secrets
from better_compute.modules.secrets.schema import SecretCreate, SecretUpdate
from better_compute.testing.canary import columns_with, new_canary, texts_with
from better_compute.testing.harness import Harness, harness, refused


async def test_a_value_is_found_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = new_canary(), new_canary()
    async with harness(secrets(environment={})) as h:
        told = await _use_secrets(h, first, second)
        captured = capsys.readouterr()
        told |= {"stdout": captured.out, "stderr": captured.err, "metrics": COUNTERS.exposition()}
        assert "internal error" in captured.err
        for value in (first, second):
            assert columns_with(h.database.settings.url, value) == []
            assert texts_with(told, value) == []


async def _use_secrets(h: Harness, first: str, second: str) -> dict[str, str]:
    """A life of a secret with every refusal a value can meet; everything that was told about it."""
    me = {"as_": "acme", "tenant_id": "acme"}
    made = await h.call("secrets.create", **me, name="one", value=first, idempotency_key="k")
    again = await h.call("secrets.create", **me, name="one", value=first, idempotency_key="k")
    answers = [made, again]
    refusals = []
    with refused(ErrorCode.CONFLICT) as caught:
        await h.call("secrets.create", **me, name="one", value=second)
    refusals += caught
    with refused(ErrorCode.CONFLICT) as caught:
        await h.call("secrets.create", **me, name="one", value=second, idempotency_key="k")
    refusals += caught
    with refused(ErrorCode.INVALID_INPUT) as caught:
        await h.call("secrets.create", **me, name=first, value=second * 2000, surprise=second)
    refusals += caught
    with refused(ErrorCode.ACCESS_DENIED) as caught:
        await h.call("secrets.create", as_="nobody", tenant_id="acme", name="two", value=second)
    refusals += caught
    answers.append(await h.call("secrets.update", **me, secret_id="one", value=second))
    answers.append(await h.call("secrets.get", **me, secret_id="one"))
    answers += (await h.call("secrets.list", **me)).items
    resolved = await resolve(h.app.deployment, "secret://one", tenant_id="acme")
    assert resolved.reveal() == second
    log_internal("secrets.create", "req_one", ValueError(f"{resolved!r} {resolved}"))
    inputs = [
        SecretCreate(tenant_id="acme", name="one", value=first),
        SecretUpdate(tenant_id="acme", secret_id="one", value=second),
    ]
    return {
        "answers": json.dumps([asdict(one) for one in answers], ensure_ascii=False),
        "refusals": repr([(str(one), one.details) for one in refusals]),
        "values": f"{resolved!r} {resolved}",
        "inputs": repr(inputs) + inputs[0].model_dump_json(),
    }


@pytest.mark.parametrize("kind", ["text", "jsonb", "text[]", "bytea", "varchar(200)"])
async def test_the_scan_sees_a_value_in_a_column_of_any_kind(kind: str) -> None:
    value = new_canary()
    stored = {"jsonb": json.dumps({"a": [value]}), "bytea": value.encode(), "text[]": ["x", value]}
    async with harness(secrets(environment={})) as h:
        url = h.database.settings.url
        with psycopg.connect(url) as connection:
            connection.execute(f"create table somewhere (id int, held {kind})".encode())
            connection.execute(f"insert into somewhere values (1, %s::{kind})".encode(), (stored.get(kind, value),))
        assert columns_with(url, value) == ["public.somewhere.held"]
        assert columns_with(url, new_canary()) == []


@pytest.mark.parametrize("shift", range(3))
async def test_the_scan_sees_a_value_within_base64(shift: int) -> None:
    value = new_canary()
    async with harness(secrets(environment={})) as h:
        url = h.database.settings.url
        with psycopg.connect(url) as connection:
            connection.execute("create table somewhere (held text)")
            connection.execute(
                "insert into somewhere values (encode(convert_to(%s, 'UTF8'), 'base64'))", ("x" * shift + value,)
            )
        assert columns_with(url, value) == ["public.somewhere.held"]
