-- The search for circles among workflows reads each workflow once, even if many paths lead to it.
\set VERBOSITY sqlstate

CREATE FUNCTION workflows_read() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
    WHERE schemaname = 'stepwise' AND relname = 'workflow'
$$;

-- 10 layers of 15 workflows, each of which calls all of the layer below
CREATE FUNCTION layer(n int) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(CASE WHEN n = 0 THEN '{"instructions": "go"}' ELSE jsonb_build_object('workflow', format('layer_%s_%s', n, i)) END)
    FROM generate_series(1, 15) AS i
$$;
DO $$
BEGIN
    FOR n IN 1 .. 10 LOOP
        FOR i IN 1 .. 15 LOOP
            PERFORM stepwise.define_workflow(jsonb_build_object('name', format('layer_%s_%s', n, i), 'steps', layer(n - 1)));
        END LOOP;
    END LOOP;
END $$;

BEGIN;
SELECT workflows_read() AS before \gset
SELECT stepwise.define_workflow(jsonb_build_object('name', 'top', 'steps', layer(10))) ->> 'created';
SELECT workflows_read() - :before < 3 * 150 AS each_once;
COMMIT;

-- a long chain
DO $$
BEGIN
    PERFORM stepwise.define_workflow('{"name": "chain_0", "steps": [{"instructions": "go"}]}');
    FOR i IN 1 .. 200 LOOP
        PERFORM stepwise.define_workflow(jsonb_build_object('name', 'chain_' || i, 'steps', jsonb_build_array(
            jsonb_build_object('workflow', 'chain_' || i - 1))));
    END LOOP;
END $$;

-- circles are still found: on the first path, on the last path, and below workflows that were already visited
SELECT stepwise.define_workflow(jsonb_build_object('name', 'layer_1_1', 'steps', '[{"workflow": "layer_3_7"}]'::jsonb));
SELECT stepwise.define_workflow(jsonb_build_object('name', 'layer_1_1', 'steps', '[{"workflow": "layer_1_2"}, {"workflow": "chain_5"}, {"workflow": "layer_2_15"}]'::jsonb));
SELECT stepwise.define_workflow('{"name": "chain_0", "steps": [{"workflow": "top"}, {"workflow": "chain_2"}]}');
SELECT stepwise.define_workflow('{"name": "top", "steps": [{"workflow": "top"}]}');

DROP FUNCTION workflows_read(), layer(int);
DO $$
BEGIN
    FOR i IN REVERSE 200 .. 0 LOOP
        PERFORM stepwise.drop_workflow('chain_' || i);
    END LOOP;
    PERFORM stepwise.drop_workflow('top');
    FOR n IN REVERSE 10 .. 1 LOOP
        FOR i IN 1 .. 15 LOOP
            PERFORM stepwise.drop_workflow(format('layer_%s_%s', n, i));
        END LOOP;
    END LOOP;
END $$;
