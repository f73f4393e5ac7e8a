-- Offers that include descendants are few and looked for every few seconds.
create index pool_offers_reaching on pool_offers (pool_id) where include_descendants;
