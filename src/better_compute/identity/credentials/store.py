"""API keys in SQL.

Revoked keys stay as rows, so that the audit trail can be read, but no list shows them. The last use is written at most
once a minute, however many processes saw one.
"""

from types import NoneType
from typing import Final

from better_compute.db.query import Query
from better_compute.identity.credentials.schema import CredentialSummary
from better_compute.identity.iam.schema import Credential

INSERT: Final = Query(
    name="credentials.insert",
    sql="""insert into iam.api_keys
             (id, tenant_id, identity_id, token_hash, name, description, policy, created_by, expires_at)
           values (%(id)s, %(tenant_id)s, %(identity_id)s, %(token_hash)s, %(name)s, %(description)s, %(policy)s,
             %(created_by)s, now() + make_interval(secs => %(life_seconds)s))
           returning (extract(epoch from expires_at) * 1000)::bigint as expires_at""",
    row=int,
)

BY_HASH: Final = Query(
    name="credentials.by_hash",
    sql="""select id, tenant_id, identity_id, 'api-key' as session_kind,
             (extract(epoch from created_at) * 1000000)::bigint as issued_us,
             (extract(epoch from created_at) * 1000)::bigint as authenticated_at,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at,
             null::bigint as mfa_at, null::bigint as seen_at, policy as scope
           from iam.api_keys where token_hash = %(token_hash)s and revoked_at is null""",
    row=Credential,
    crosses_tenants="whose key it is, is what this finds out",
)

_SUMMARY: Final = """k.id, k.identity_id, (extract(epoch from k.created_at) * 1000)::bigint as created_at,
  (extract(epoch from k.expires_at) * 1000)::bigint as expires_at, k.expires_at <= now() as expired,
  k.policy,
  case when k.policy #>> '{statements,0,sid}' = 'KeyScopes'
    then array(select jsonb_array_elements_text(k.policy #> '{statements,0,actions}')) end as scopes,
  k.name, k.description, (extract(epoch from k.last_used_at) * 1000)::bigint as last_used_at"""

_LIVE: Final = """iam.api_keys k
  join iam.identities i on i.tenant_id = k.tenant_id and i.id = k.identity_id and k.created_at > i.valid_from
  where k.tenant_id = %(tenant_id)s and k.revoked_at is null"""

LIST: Final = Query(
    name="credentials.list",
    sql=f"""select {_SUMMARY} from {_LIVE}
             and (%(identity_id)s::text is null or k.identity_id = %(identity_id)s)
           order by k.id""",  # noqa: S608  # a constant
    row=CredentialSummary,
)

FIND: Final = Query(
    name="credentials.find",
    sql=f"select {_SUMMARY} from {_LIVE} and k.id = %(id)s for update of k",  # noqa: S608  # a constant
    row=CredentialSummary,
)

BY_ID: Final = Query(
    name="credentials.by_id",
    sql="""select id, tenant_id, identity_id, 'api-key' as session_kind,
             (extract(epoch from created_at) * 1000000)::bigint as issued_us,
             (extract(epoch from created_at) * 1000)::bigint as authenticated_at,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at,
             null::bigint as mfa_at, null::bigint as seen_at, policy as scope
           from iam.api_keys where tenant_id = %(tenant_id)s and id = %(id)s and revoked_at is null""",
    row=Credential,
)

UPDATE: Final = Query(
    name="credentials.update",
    sql="""update iam.api_keys set name = %(name)s, description = %(description)s,
             expires_at = to_timestamp(%(expires_at)s::bigint / 1000.0)
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=NoneType,
)

ROTATE: Final = Query(
    name="credentials.rotate",
    sql="""with old as (
             update iam.api_keys set revoked_at = now()
             where tenant_id = %(tenant_id)s and id = %(id)s and revoked_at is null
             returning tenant_id, identity_id, name, description, policy, expires_at
           )
           insert into iam.api_keys
             (id, tenant_id, identity_id, token_hash, name, description, policy, created_by, expires_at)
           select %(new_id)s, tenant_id, identity_id, %(token_hash)s, name, description, policy, %(created_by)s,
             expires_at from old
           returning (extract(epoch from expires_at) * 1000)::bigint as expires_at""",
    row=int,
)

REVOKE: Final = Query(
    name="credentials.revoke",
    sql="""update iam.api_keys set revoked_at = now()
           where tenant_id = %(tenant_id)s and id = %(id)s and revoked_at is null returning id""",
    row=str,
)

USED: Final = Query(
    name="credentials.used",
    sql="""update iam.api_keys k set last_used_at = to_timestamp(u.at / 1000.0)
           from unnest(%(ids)s::text[], %(times)s::bigint[]) u (id, at)
           where k.id = u.id
             and (k.last_used_at is null or k.last_used_at <= to_timestamp(u.at / 1000.0) - interval '1 minute')""",
    row=NoneType,
    crosses_tenants="notes uses of keys of all tenants at once, each found by its own id",
)
