-- The tables of the benchmark: the plans for the clients of pgbench, and the measurements.

CREATE SCHEMA bench;

CREATE TABLE bench.pool (
    way     text,
    client  int,
    n       int,
    plan_id uuid NOT NULL,
    PRIMARY KEY (way, client, n)
);

CREATE TABLE bench.run (
    id       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    size     int NOT NULL,
    clients  int NOT NULL,
    sync     text NOT NULL,
    round    int NOT NULL,
    way      text NOT NULL,
    steps    int NOT NULL,
    per_s    float8 NOT NULL,
    cpu      int NOT NULL,
    wal      pg_lsn NOT NULL
);

-- The definition of a plan with the given number of realistic steps.
CREATE FUNCTION bench.steps(size int, tool text = 'inspect') RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_agg(jsonb_build_object('name', 'step_' || i, 'tool', tool, 'instructions', 'Look at item ' || i || ' and say what it is',
                                        'arguments', jsonb_build_object('item', i, 'deep', true)) ORDER BY i)
    FROM generate_series(1, size) AS i
$$;

-- Tools in the database that do nothing, in three languages.
CREATE FUNCTION bench.nothing_c(jsonb) RETURNS jsonb LANGUAGE internal IMMUTABLE AS 'jsonb_build_object_noargs';
CREATE FUNCTION bench.nothing_sql(jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::jsonb $$;
CREATE FUNCTION bench.nothing_plpgsql(jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN '{}'; END $$;
SELECT stepwise.register_tool('nothing_' || l, ('bench.nothing_' || l || '(jsonb)')::regprocedure) FROM unnest('{c,sql,plpgsql}'::text[]) AS l \g /dev/null

CREATE FUNCTION bench.new_plan(steps jsonb, name text = 'bench', on_failure text = 'continue') RETURNS uuid
LANGUAGE sql AS $$
    SELECT (stepwise.create_plan(name, 'See how fast it goes', steps, on_failure => on_failure) ->> 'planId')::uuid
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

-- Create the plans of one round: the given number for each way and client.
CREATE PROCEDURE bench.fill(ways text[], clients int, plans int, size int)
LANGUAGE plpgsql AS $$
DECLARE
    steps jsonb := bench.steps(size);
BEGIN
    TRUNCATE bench.pool;
    INSERT INTO bench.pool
    SELECT way, client - 1, n,
           CASE WHEN way LIKE 'handwritten%' THEN bench.new_handwritten_plan(steps) ELSE bench.new_plan(steps) END
    FROM unnest(ways) AS way, generate_series(1, plans) AS n, generate_series(1, clients) AS client;
END $$;

-- Record a run after checking that it did all its steps. Its WAL starts at the end of the previous run.
CREATE PROCEDURE bench.note(size int, clients int, sync text, round int, way text, steps int, per_s float8, cpu int)
LANGUAGE plpgsql AS $$
DECLARE
    completed int;
BEGIN
    IF way <> '' THEN
        SELECT sum(coalesce(h.completed, s.completed)) INTO completed
        FROM bench.pool AS p
        LEFT JOIN handwritten.plan AS h ON h.id = p.plan_id
        LEFT JOIN stepwise.plan AS s ON s.tenant = 'default' AND s.id = p.plan_id
        WHERE p.way = note.way;
        IF completed IS DISTINCT FROM steps THEN
            RAISE EXCEPTION '%: % of % steps are completed', way, completed, steps;
        END IF;
    END IF;
    INSERT INTO bench.run (size, clients, sync, round, way, steps, per_s, cpu, wal)
    VALUES (size, clients, sync, round, way, steps, per_s, cpu, pg_current_wal_insert_lsn());
END $$;

-- The speed of each run, its ratio to the handwritten run of the same round, and its WAL.
CREATE VIEW bench.comparison AS
SELECT r.*, r.per_s / h.per_s AS ratio, (r.wal - r.wal_before) / r.steps AS wal_per_step
FROM (SELECT *, lag(wal) OVER (ORDER BY id) AS wal_before FROM bench.run) AS r
JOIN bench.run AS h ON (h.size, h.clients, h.sync, h.round, h.way) = (r.size, r.clients, r.sync, r.round, 'handwritten')
WHERE r.way <> '';

-- ---------- existing data ----------

-- Finish the first steps of a plan in one statement, by plain SQL.
CREATE PROCEDURE bench.finish(plan uuid, steps int)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stepwise.step SET status = 'in_progress' WHERE tenant = 'default' AND plan_id = plan AND step_order <= steps AND status = 'pending';
    UPDATE stepwise.step SET status = 'completed', result = '{"value": 42}' WHERE tenant = 'default' AND plan_id = plan AND step_order <= steps AND status = 'in_progress';
END $$;

-- Copy a finished plan many times. The copies bypass the guards, which needs a superuser. Here only the number of rows matters.
CREATE PROCEDURE bench.multiply(plan uuid, times int)
LANGUAGE plpgsql AS $$
DECLARE
    target    record;
    selection text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR target IN VALUES ('plan', 'id'), ('plan_detail', 'plan_id'), ('step', 'plan_id'), ('audit', 'plan_id') LOOP
        SELECT string_agg(CASE WHEN attname IN ('id', 'plan_id', 'root_id', 'step_id') AND atttypid = 'uuid'::regtype
                               THEN format('md5(t.%I::text || n)::uuid', attname) ELSE format('t.%I', attname) END, ', ' ORDER BY attnum)
        INTO selection
        FROM pg_attribute WHERE attrelid = ('stepwise.' || target.column1)::regclass AND attnum > 0 AND NOT attisdropped;
        EXECUTE format('INSERT INTO stepwise.%1$I SELECT %2$s FROM stepwise.%1$I AS t, generate_series(1, %3$s) AS n WHERE t.%4$I = %5$L',
                       target.column1, selection, times, target.column2, plan);
    END LOOP;
END $$;

-- The same for handwritten plans.
CREATE PROCEDURE bench.multiply_handwritten(plans int, size int)
LANGUAGE sql AS $$
    WITH p AS (
        INSERT INTO handwritten.plan (status, steps, completed, name, goal)
        SELECT 'completed', size, size, 'bench', 'See how fast it goes' FROM generate_series(1, plans) RETURNING id
    ), s AS (
        INSERT INTO handwritten.step (plan_id, step_order, status, attempt, started_at, completed_at, name, tool, result)
        SELECT p.id, n, 'completed', 1, now(), now(), 'step_' || n, 'inspect', '{"value": 42}' FROM p, generate_series(1, size) AS n
        RETURNING id, plan_id
    )
    INSERT INTO handwritten.audit (plan_id, step_id, event)
    SELECT s.plan_id, s.id, e FROM s, unnest('{step_started,step_completed}'::text[]) AS e
$$;

-- Start with some finished plans and with statistics, as in a database that has been in use.
CREATE PROCEDURE bench.populate(plans int)
LANGUAGE plpgsql AS $$
DECLARE
    template uuid := bench.new_plan(bench.steps(10));
BEGIN
    CALL bench.finish(template, 10);
    CALL bench.multiply(template, plans);
    CALL bench.multiply_handwritten(plans, 10);
END $$;
