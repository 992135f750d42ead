-- Distributes every table by tenant. Optional: only where the extension `citus` is installed; run by hand, once, after
-- `reshelf migrate` and before the first record is written. Does nothing where the extension is missing.
--
-- Tables without a tenant are small and go to every node. The others lie together by tenant, so that each unit of work is
-- one node's. The append-only triggers are only about rows of their own node, which is what Citus asks of them.
DO $$
DECLARE
    name text;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') THEN
        RAISE NOTICE 'citus is not installed; nothing is distributed';
        RETURN;
    END IF;
    SET LOCAL citus.enable_unsafe_triggers = on;
    FOREACH name IN ARRAY ARRAY['cqs_tenant', 'cqs_queue', 'cqs_brake', 'cqs_audit_anchor', 'cqs_audit_reader', 'dto_alias_rules'] LOOP
        EXECUTE format('SELECT create_reference_table(%L)', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['dto', 'dto_alias', 'dto_alias_count', 'dto_history', 'cqs_lane', 'cqs_place', 'cqs_head',
        'cqs_waiting', 'cqs_lease', 'cqs_leased', 'cqs_lapse', 'cqs_split', 'cqs_operation', 'cqs_control', 'cqs_pace', 'cqs_ledger_delta',
        'cqs_ledger', 'cqs_dead', 'cqs_dead_group', 'cqs_retry', 'cqs_undelivered', 'cqs_audit'] LOOP
        EXECUTE format('SELECT create_distributed_table(%L, ''tenant'', colocate_with => %L)', name,
            CASE name WHEN 'dto' THEN 'default' ELSE 'dto' END);
    END LOOP;
END $$;
