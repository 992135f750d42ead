-- Indexes that only those may use who ask for what they are for. Where a table was empty when its rows were last counted,
-- every index whose first column is bound looks alike to the planner; it then picks one by which it walks all of a tenant's
-- rows, and the dead ones with them. A statement that does not say the guard cannot use the index.
DROP INDEX cqs_leased_urn;
CREATE INDEX cqs_leased_urn ON cqs_leased (tenant, urn) WHERE urn <> '';
DROP INDEX cqs_lease_lane;
CREATE INDEX cqs_lease_lane ON cqs_lease (tenant, lane, queue, generation) WHERE lane <> 0;
