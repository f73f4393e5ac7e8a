-- The tenants above, outermost first, whose quota rows an instance was charged to besides its own tenant's: those in
-- whose grants the tenant shared when it was admitted. What was charged there is released there.
alter table instances add column charged_to text[] not null default '{}';
