-- needs: people/0001_identities
-- API keys of service accounts. The token is shown once; this is its SHA-256.
-- `policy` is the key's scope: a policy that bounds it and never grants.
create table iam.api_keys (
  id text primary key,
  tenant_id text not null,
  identity_id text not null,
  token_hash text not null,
  name text,
  description text,
  policy jsonb,
  created_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  last_used_at timestamptz,
  foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id)
);
create unique index api_keys_token on iam.api_keys (token_hash);
create index api_keys_identity on iam.api_keys (tenant_id, identity_id);

create constraint trigger api_keys_changed after update of expires_at, revoked_at, policy or delete on iam.api_keys
  deferrable initially deferred for each row execute function iam.note_change();
