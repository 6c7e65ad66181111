-- What the clients find: a tool of the database, a workflow, and roles with different rights.

CREATE EXTENSION pg_stepwise;
CREATE ROLE owner SUPERUSER LOGIN;
CREATE ROLE worker LOGIN;
SELECT stepwise.add_member('worker', 'default'), stepwise.grant_agent('worker', decide => false);

CREATE FUNCTION brew(args jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF args ->> 'leaf' = 'none' THEN
        RAISE 'there is no leaf';
    END IF;
    PERFORM pg_sleep(coalesce((args ->> 'seconds')::float8, 0));
    RETURN jsonb_build_object('cup', args ->> 'leaf');
END $$;
SELECT stepwise.register_tool('brew', 'brew(jsonb)',
    '{"type": "object", "properties": {"leaf": {"type": "string"}, "seconds": {"type": "number"}}, "required": ["leaf"]}', expose => true);
SELECT stepwise.define_workflow('{"name": "tea", "description": "Make tea",
    "inputs": {"leaf": {"type": "string", "description": "which tea", "default": "assam"}, "cups": {"type": "integer", "default": 1}},
    "steps": [{"name": "brew", "tool": "brew", "arguments": {"leaf": "${inputs.leaf}"}}, {"name": "milk", "prompt": "Milk in ${inputs.cups} cups?"}],
    "outputs": {"cup": "${steps.brew.outputs.cup}", "milk": "${steps.milk.outputs}"}}');

-- Two roles that may both decide. Under separateReviewer, only the one that did not work may.
CREATE ROLE agent LOGIN;
CREATE ROLE reviewer LOGIN;
SELECT stepwise.add_member(r, 'default'), stepwise.grant_agent(r) FROM unnest('{agent,reviewer}'::regrole[]) AS r;

-- One that only reads.
CREATE ROLE reader LOGIN;
SELECT stepwise.add_member('reader', 'default'), stepwise.grant_reader('reader');

-- Two roles of other tenants.
CREATE ROLE theirs LOGIN;
CREATE ROLE ours LOGIN;
SELECT stepwise.add_member(r, r::text), stepwise.grant_agent(r) FROM unnest('{theirs,ours}'::regrole[]) AS r;
