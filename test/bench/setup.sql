-- What the benchmark has beside the tables of the contenders: definitions, plans for the clients, and other rows.

CREATE SCHEMA bench;

-- The plans that the clients of a run take, if they do not create them themselves.
CREATE TABLE bench.pool (
    contender text,
    client    int,
    n         int,
    plan_id   uuid NOT NULL,
    PRIMARY KEY (contender, client, n)
);

-- What a run has done is the difference between before and after it.
CREATE VIEW bench.probe AS
SELECT (SELECT coalesce(sum(completed), 0) FROM handwritten.plan) + (SELECT coalesce(sum(completed), 0) FROM stepwise.plan) AS steps,
       pg_current_wal_insert_lsn() - '0/0' AS wal,
       (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relkind = 'r' AND relnamespace IN ('handwritten'::regnamespace, 'stepwise'::regnamespace)) AS disk;

-- ---------- plans ----------

-- The definition of a plan with the given number of realistic steps. With dependencies, each step depends on the one before it, or on none
-- ("parallel").
CREATE FUNCTION bench.steps(size int, tool text = 'inspect', dependencies text = '') RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_agg(jsonb_build_object('name', 'step_' || i, 'tool', tool, 'instructions', 'Look at item ' || i || ' and say what it is',
                                        'arguments', jsonb_build_object('item', i, 'deep', true))
                     || CASE dependencies WHEN '' THEN '{}'
                        ELSE jsonb_build_object('dependsOn', CASE WHEN i = 1 OR dependencies = 'parallel' THEN '[]'
                                                             ELSE jsonb_build_array('step_' || i - 1) END) END ORDER BY i)
    FROM generate_series(1, size) AS i
$$;

-- Tools in the database that do nothing, in three languages.
CREATE FUNCTION bench.nothing_c(jsonb) RETURNS jsonb LANGUAGE internal IMMUTABLE AS 'jsonb_build_object_noargs';
CREATE FUNCTION bench.nothing_sql(jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::jsonb $$;
CREATE FUNCTION bench.nothing_plpgsql(jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN '{}'; END $$;
SELECT stepwise.register_tool('nothing_' || l, ('bench.nothing_' || l || '(jsonb)')::regprocedure) FROM unnest('{c,sql,plpgsql}'::text[]) AS l \g /dev/null

CREATE FUNCTION bench.new_plan(steps jsonb) RETURNS uuid
LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('bench', 'See how fast it goes', steps) ->> 'planId')::uuid
$$;

CREATE FUNCTION bench.new_handwritten_plan(steps jsonb) RETURNS uuid
LANGUAGE sql AS $$
    WITH p AS (
        INSERT INTO handwritten.plan (name, goal, steps)
        VALUES ('bench', 'See how fast it goes', jsonb_array_length(steps)) RETURNING id
    ), s AS (
        INSERT INTO handwritten.step (plan_id, step_order, name, tool, instructions, arguments)
        SELECT p.id, e.n, e.step ->> 'name', e.step ->> 'tool', e.step ->> 'instructions', e.step -> 'arguments'
        FROM p, jsonb_array_elements(steps) WITH ORDINALITY AS e (step, n)
    )
    SELECT id FROM p
$$;

-- Submit the steps that are claimed in the plans of a contender: advance claims one more than it does.
CREATE FUNCTION bench.submit_claimed(whose text) RETURNS void
LANGUAGE sql AS $$
    SELECT stepwise.submit_step_result(s.id, '{}') FROM bench.pool AS p JOIN stepwise.step AS s ON s.plan_id = p.plan_id
    WHERE p.contender = whose AND s.status = 'in_progress'
$$;

CREATE FUNCTION bench.pending(plan uuid) RETURNS bigint
LANGUAGE sql AS $$
    SELECT (SELECT count(*) FROM handwritten.step WHERE plan_id = plan AND status = 'pending')
           + (SELECT count(*) FROM stepwise.step WHERE plan_id = plan AND status = 'pending')
$$;

-- Provide the plans of one turn: for each client so many, with so many steps to do of each. A plan that is longer than a turn is worked on in
-- the next turn too, as long as it has enough steps. If all clients share a plan, it is a new one.
CREATE PROCEDURE bench.fill(whose text, by_hand boolean, size int, tool text, dependencies text, clients int, plans int, steps int, shared boolean)
LANGUAGE plpgsql AS $$
DECLARE
    definition jsonb;
    plan       uuid;
BEGIN
    PERFORM bench.submit_claimed(whose) WHERE NOT shared;
    IF NOT shared AND (SELECT count(*) = clients * plans AND min(bench.pending(plan_id)) >= steps FROM bench.pool WHERE contender = whose) THEN
        RETURN;
    END IF;
    definition := bench.steps(size, tool, dependencies);
    DELETE FROM bench.pool WHERE contender = whose;
    FOR n IN 1 .. plans LOOP
        FOR client IN 0 .. clients - 1 LOOP
            IF client = 0 OR NOT shared THEN
                plan := CASE WHEN by_hand THEN bench.new_handwritten_plan(definition) ELSE bench.new_plan(definition) END;
            END IF;
            INSERT INTO bench.pool VALUES (whose, client, n, plan);
        END LOOP;
    END LOOP;
END $$;

-- ---------- who calls ----------

-- An agent, as users have them: no superuser, and a member of one tenant.
SELECT stepwise.add_member('bench_agent', 'default'), stepwise.grant_agent('bench_agent') \g /dev/null
GRANT USAGE ON SCHEMA bench, handwritten TO bench_agent;
GRANT ALL ON ALL TABLES IN SCHEMA bench, handwritten TO bench_agent;

-- ---------- other rows ----------

-- Copy a finished plan, with numbers from after the first to the last. The copies bypass the guards, which needs a superuser. Here only the number of rows matters. The ids are in
-- the order of the copies, as those of plans that were made one after the other.
CREATE PROCEDURE bench.multiply(plan uuid, first int, last int)
LANGUAGE plpgsql AS $$
DECLARE
    target    record;
    selection text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR target IN
        SELECT c.oid::regclass AS name, t.key FROM pg_class AS c
        JOIN (VALUES ('plan', 'id'), ('plan_detail', 'plan_id'), ('step', 'plan_id'), ('audit', 'plan_id'), ('audit_log', 'plan_id')) AS t (name, key)
        ON c.relname = t.name WHERE c.relkind = 'r' AND c.relnamespace = 'stepwise'::regnamespace
    LOOP
        SELECT string_agg(CASE WHEN attname IN ('id', 'plan_id', 'root_id', 'step_id') AND atttypid = 'uuid'::regtype
                               THEN format('(lpad(to_hex(n), 8, ''0'') || substr(t.%I::text, 9))::uuid', attname) ELSE format('t.%I', attname) END,
                          ', ' ORDER BY attnum)
        INTO selection
        FROM pg_attribute WHERE attrelid = target.name AND attnum > 0 AND NOT attisdropped;
        EXECUTE format('INSERT INTO %1$s SELECT %2$s FROM generate_series(%3$s + 1, %4$s) AS n, %1$s AS t WHERE t.%5$I = %6$L',
                       target.name, selection, first, last, target.key, plan);
    END LOOP;
END $$;

-- The same for handwritten plans.
CREATE PROCEDURE bench.multiply_handwritten(plans int, size int)
LANGUAGE sql AS $$
    WITH p AS (
        INSERT INTO handwritten.plan (status, steps, completed, name, goal)
        SELECT 'completed', size, size, 'bench', 'See how fast it goes' FROM generate_series(1, plans) RETURNING id
    ), s AS (
        INSERT INTO handwritten.step (plan_id, step_order, status, attempt, started_at, completed_at, name, tool, instructions, arguments, result)
        SELECT p.id, n, 'completed', 1, now(), now(), 'step_' || n, 'inspect', 'Look at item ' || n || ' and say what it is', '{"item": 1, "deep": true}',
               '{"value": 42}' FROM p, generate_series(1, size) AS n
        RETURNING id, plan_id
    )
    INSERT INTO handwritten.audit (plan_id, step_id, event)
    SELECT s.plan_id, s.id, e FROM s, unnest('{step_started,step_completed}'::text[]) AS e
$$;

-- Make finished plans of ten steps each, until there are so many.
CREATE PROCEDURE bench.populate(plans int)
LANGUAGE plpgsql AS $$
DECLARE
    there    int := (SELECT count(*) FROM stepwise.plan WHERE name = 'finished');
    template uuid;
BEGIN
    IF there >= plans THEN
        RETURN;
    END IF;
    template := stepwise.create_plan('finished', 'Be there', bench.steps(10, 'nothing_c')) ->> 'planId';
    PERFORM stepwise.run(template);
    CALL bench.multiply(template, there, plans - 1);
    CALL bench.multiply_handwritten(plans - there, 10);
END $$;

-- Members of tenants, each a role.
CREATE PROCEDURE bench.add_members(members int)
LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. members LOOP
        EXECUTE format('CREATE ROLE bench_member_%s', i);
        PERFORM stepwise.add_member(format('bench_member_%s', i)::regrole, 'tenant_' || i % 100);
    END LOOP;
END $$;
