-- A minimal handwritten solution: plans, steps and an audit log with only the necessary columns, and PL/pgSQL functions that claim
-- and complete a step. It has no tenants, no rights, no chain, and no checks except of the state of the step.
-- Keys, fill factors and the kind of ids are those of the extension, so that they make no difference. The index on pending steps is
-- usual for queues; without it, a claim reads the whole plan.

CREATE SCHEMA handwritten;

CREATE TYPE handwritten.status AS ENUM ('pending', 'in_progress', 'completed');

CREATE TABLE handwritten.plan (
    id         uuid PRIMARY KEY DEFAULT stepwise.uuid7(),
    status     handwritten.status NOT NULL DEFAULT 'pending',
    steps      int NOT NULL,
    completed  int NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    name       text NOT NULL,
    goal       text NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE handwritten.step (
    id           uuid PRIMARY KEY DEFAULT stepwise.uuid7(),
    plan_id      uuid NOT NULL,
    step_order   int NOT NULL,
    status       handwritten.status NOT NULL DEFAULT 'pending',
    attempt      int NOT NULL DEFAULT 0,
    started_at   timestamptz,
    completed_at timestamptz,
    name         text NOT NULL,
    tool         text,
    instructions text,
    arguments    jsonb,
    result       jsonb
) WITH (fillfactor = 65);
CREATE INDEX step_pending ON handwritten.step (plan_id, step_order) WHERE status = 'pending';

CREATE TABLE handwritten.audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plan_id uuid NOT NULL,
    step_id uuid NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    event   text NOT NULL,
    actor   text NOT NULL DEFAULT current_user
);

-- The columns of a claimed step that an agent needs.
CREATE TYPE handwritten.claimed AS (step_id uuid, step_order int, name text, tool text, instructions text, arguments jsonb, attempt int);

CREATE FUNCTION handwritten.claim(p_plan uuid) RETURNS handwritten.claimed
LANGUAGE plpgsql AS $$
DECLARE
    c handwritten.claimed;
BEGIN
    UPDATE handwritten.step AS s
    SET status = 'in_progress', started_at = clock_timestamp(), attempt = s.attempt + 1
    WHERE s.id = (SELECT n.id FROM handwritten.step AS n
                  WHERE n.plan_id = p_plan AND n.status = 'pending'
                  ORDER BY n.step_order LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING s.id, s.step_order, s.name, s.tool, s.instructions, s.arguments, s.attempt INTO c;
    IF FOUND THEN
        INSERT INTO handwritten.audit (plan_id, step_id, event) VALUES (p_plan, c.step_id, 'step_started');
    END IF;
    RETURN c;
END $$;

CREATE FUNCTION handwritten.complete(p_step uuid, p_result jsonb) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    v_plan uuid;
BEGIN
    UPDATE handwritten.step AS s
    SET status = 'completed', result = p_result, completed_at = clock_timestamp()
    WHERE s.id = p_step AND s.status = 'in_progress'
    RETURNING s.plan_id INTO v_plan;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'step % is not in progress', p_step;
    END IF;
    INSERT INTO handwritten.audit (plan_id, step_id, event) VALUES (v_plan, p_step, 'step_completed');
    UPDATE handwritten.plan AS p
    SET completed = p.completed + 1, updated_at = clock_timestamp(),
        status = CASE WHEN p.completed + 1 = p.steps THEN 'completed'::handwritten.status ELSE 'in_progress' END
    WHERE p.id = v_plan;
    RETURN v_plan;
END $$;

-- Both in one round trip, to compare with stepwise.advance.
CREATE FUNCTION handwritten.advance(p_step uuid, p_result jsonb) RETURNS handwritten.claimed
LANGUAGE plpgsql AS $$
BEGIN
    RETURN handwritten.claim(handwritten.complete(p_step, p_result));
END $$;
