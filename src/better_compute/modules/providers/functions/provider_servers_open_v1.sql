-- Opens the record of a server that is to be ordered for `p_holder`. The account's row is held by the reference, so that
-- an account and the first server ordered through it come one after the other.
create or replace function provider_servers_open_v1(
  p_holder text, p_tenant text, p_pool text, p_account text, p_offer text
) returns boolean language plpgsql as $$
begin
  insert into provider_servers (holder, tenant_id, pool_id, account_id, offer_id)
  values (p_holder, p_tenant, p_pool, p_account, p_offer);
  return true;
end
$$;
