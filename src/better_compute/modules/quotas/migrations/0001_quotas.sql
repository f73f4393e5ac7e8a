-- How much of a pool a tenant may use, and how much it uses, per resource.
-- No row grants nothing, except to the pool's owner, for whom no row and a null max both mean no limit; only the owner's
-- rows ever have a null max. Only `used` changes on the hot path: it is in no index, and pages keep room for its updates.
create table quotas (
  tenant_id text not null,
  pool_id text not null,
  resource text collate "C" not null,
  max bigint check (max between 0 and 9007199254740992),
  used bigint not null default 0 check (used >= 0),
  primary key (tenant_id, pool_id, resource)
) with (fillfactor = 50);
create index quotas_pool on quotas (pool_id, tenant_id);
