-- needs: tenants/0001_tenants
-- Suspending or deleting a tenant ends the sessions of everybody in it and below it: those made until then.
alter table iam.tenants add column sessions_valid_from timestamptz not null default to_timestamp(0);
