"""Passwords, authenticators, sessions and attempts in SQL."""

from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.db.query import Query
from better_compute.identity.iam.schema import Credential
from better_compute.kernel.resealing import SealedColumn

SEEDS: Final = SealedColumn(
    table="iam.totp", column="secret", key=("tenant_id", "identity_id"), purpose="totp:{identity_id}"
)
"""The seeds of authenticators."""


@dataclass(frozen=True, slots=True)
class Proofs:
    """What a person can prove to be themselves with."""

    password_hash: str | None
    totp_secret: str | None
    """Sealed; None without an authenticator that was confirmed."""
    last_step: int


@dataclass(frozen=True, slots=True)
class Enrolment:
    """An authenticator, confirmed or not."""

    secret: str
    confirmed: bool
    last_step: int


PROOFS: Final = Query(
    name="sessions.proofs",
    sql="""select (select hash from iam.passwords
                   where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s) as password_hash,
             t.secret as totp_secret, coalesce(t.last_step, 0) as last_step
           from (select 1) one left join iam.totp t
             on t.tenant_id = %(tenant_id)s and t.identity_id = %(identity_id)s and t.confirmed_at is not null""",
    row=Proofs,
)

SET_PASSWORD: Final = Query(
    name="sessions.set_password",
    sql="""insert into iam.passwords (tenant_id, identity_id, hash)
           values (%(tenant_id)s, %(identity_id)s, %(hash)s)
           on conflict (tenant_id, identity_id) do update set hash = excluded.hash, changed_at = now()""",
    row=NoneType,
)

BEGIN_TOTP: Final = Query(
    name="sessions.begin_totp",
    sql="""insert into iam.totp (tenant_id, identity_id, secret) values (%(tenant_id)s, %(identity_id)s, %(secret)s)
           on conflict (tenant_id, identity_id) do update
             set secret = excluded.secret, confirmed_at = null, last_step = 0 where iam.totp.confirmed_at is null
           returning identity_id""",
    row=str,
)

FIND_TOTP: Final = Query(
    name="sessions.find_totp",
    sql="""select secret, confirmed_at is not null as confirmed, last_step from iam.totp
           where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s for update""",
    row=Enrolment,
)

USE_STEP: Final = Query(
    name="sessions.use_step",
    sql="""update iam.totp set last_step = %(step)s, confirmed_at = coalesce(confirmed_at, now())
           where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s and last_step < %(step)s
           returning identity_id""",
    row=str,
)

REMOVE_TOTP: Final = Query(
    name="sessions.remove_totp",
    sql="delete from iam.totp where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s",
    row=NoneType,
)

INSERT: Final = Query(
    name="sessions.insert",
    sql="""insert into iam.sessions (id, tenant_id, identity_id, token_hash, mfa_at, expires_at)
           values (%(id)s, %(tenant_id)s, %(identity_id)s, %(token_hash)s,
             case when %(mfa)s::boolean then now() end, now() + make_interval(secs => %(life_seconds)s))
           returning (extract(epoch from expires_at) * 1000)::bigint as expires_at""",
    row=int,
)

BY_HASH: Final = Query(
    name="sessions.by_hash",
    sql="""select id, tenant_id, identity_id, 'user' as session_kind,
             (extract(epoch from created_at) * 1000000)::bigint as issued_us,
             (extract(epoch from created_at) * 1000)::bigint as authenticated_at,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at,
             (extract(epoch from mfa_at) * 1000)::bigint as mfa_at,
             (extract(epoch from seen_at) * 1000)::bigint as seen_at, null::jsonb as scope
           from iam.sessions where token_hash = %(token_hash)s and ended_at is null""",
    row=Credential,
    crosses_tenants="whose session it is, is what this finds out",
)

END: Final = Query(
    name="sessions.end",
    sql="""update iam.sessions set ended_at = now()
           where tenant_id = %(tenant_id)s and id = %(id)s and ended_at is null""",
    row=NoneType,
)

SEEN: Final = Query(
    name="sessions.seen",
    sql="""update iam.sessions s set seen_at = to_timestamp(u.at / 1000.0)
           from unnest(%(ids)s::text[], %(times)s::bigint[]) u (id, at)
           where s.id = u.id and s.seen_at <= to_timestamp(u.at / 1000.0) - interval '1 minute'""",
    row=NoneType,
    crosses_tenants="notes uses of sessions of all tenants at once, each found by its own id",
)

COUNT_ATTEMPT: Final = Query(
    name="sessions.count_attempt",
    sql="""insert into iam.sign_in_attempts as a (subject) values (%(subject)s)
           on conflict (subject) do update set
             attempts = case when a.window_started_at > now() - make_interval(secs => %(window_seconds)s)
                        then a.attempts + 1 else 1 end,
             window_started_at = case when a.window_started_at > now() - make_interval(secs => %(window_seconds)s)
                                 then a.window_started_at else now() end
           returning attempts""",
    row=int,
    crosses_tenants="attempts are counted by a hash of tenant and address",
)

FORGET_ATTEMPTS: Final = Query(
    name="sessions.forget_attempts",
    sql="""delete from iam.sign_in_attempts where subject = %(subject)s or subject in (
             select subject from iam.sign_in_attempts
             where window_started_at < now() - make_interval(secs => %(window_seconds)s)
             limit 100 for update skip locked)""",
    row=NoneType,
    crosses_tenants="attempts are counted by a hash of tenant and address",
)
