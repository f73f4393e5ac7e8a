-- needs: people/0001_identities
-- What people sign in with, and the sessions that come of it. Passwords are Argon2id hashes, TOTP secrets are sealed,
-- and of a session's token only the SHA-256 is kept.
create table iam.passwords (
  tenant_id text not null,
  identity_id text not null,
  hash text not null,
  changed_at timestamptz not null default now(),
  primary key (tenant_id, identity_id),
  foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id)
);

-- `last_step` is the time step of the newest code used, so that no code works twice.
create table iam.totp (
  tenant_id text not null,
  identity_id text not null,
  secret text not null,
  confirmed_at timestamptz,
  last_step bigint not null default 0,
  primary key (tenant_id, identity_id),
  foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id)
);

create table iam.sessions (
  id text primary key,
  tenant_id text not null,
  identity_id text not null,
  token_hash text not null,
  mfa_at timestamptz,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  seen_at timestamptz not null default now(),
  ended_at timestamptz,
  foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id)
);
create unique index sessions_token on iam.sessions (token_hash);
create index sessions_identity on iam.sessions (tenant_id, identity_id);

-- Attempts to sign in, by the hash of tenant and e-mail address, in windows of fixed length.
create table iam.sign_in_attempts (
  subject text primary key,
  window_started_at timestamptz not null default now(),
  attempts integer not null default 1
);

create constraint trigger sessions_changed after update of expires_at, ended_at, mfa_at or delete on iam.sessions
  deferrable initially deferred for each row execute function iam.note_change();
