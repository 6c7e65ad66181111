-- A stand-in for stepwise.mcp, for the tests of the program stepwise-mcp alone: what passes between the program and the database,
-- without anything of MCP itself. It is for a database without the extension. Each method below makes the database answer in one
-- of the ways that the program has to deal with.

CREATE SCHEMA stepwise;
CREATE TABLE stepwise.heard (id bigserial, what text, at timestamptz DEFAULT clock_timestamp());
CREATE SEQUENCE stepwise.tries;

CREATE FUNCTION stepwise.enter_tenant(tenant text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF tenant = 'nobody' THEN
        RAISE EXCEPTION USING ERRCODE = 'SW013', MESSAGE = 'no such tenant', HINT = 'Ask for another tenant.';
    END IF;
    RETURN set_config('stand_in.tenant', tenant, true);
END $$;

CREATE FUNCTION stepwise.heard(about text) RETURNS bigint LANGUAGE sql AS
    $$ SELECT count(*) FROM stepwise.heard WHERE what = about $$;

-- The result, or an object with "stepwise" in it that stands beside the result.
CREATE FUNCTION stepwise.stand_in(method text, params jsonb, id jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    question constant jsonb := '{"method": "elicitation/create", "params": {"mode": "form", "message": "Good?"}}';
    done int;
BEGIN
    CASE method
        WHEN 'initialize' THEN
            RETURN jsonb_build_object('result', jsonb_build_object('protocolVersion', params -> 'protocolVersion'));
        WHEN 'echo' THEN
            RETURN jsonb_build_object('result', jsonb_build_object('params', params));
        WHEN 'sleep' THEN
            PERFORM pg_sleep((params ->> 'seconds')::float8);
            INSERT INTO stepwise.heard (what) VALUES ('slept');
            RETURN '{"result": {}}';
        WHEN 'write' THEN
            INSERT INTO stepwise.heard (what) VALUES ('write');
            RETURN '{"result": {}}';
        WHEN 'who' THEN
            RETURN jsonb_build_object('result', jsonb_build_object('user', current_user, 'readOnly', current_setting('transaction_read_only'),
                'tenant', current_setting('stand_in.tenant', true), 'pid', pg_backend_pid(), 'encoding', current_setting('client_encoding')));
        WHEN 'progress' THEN
            FOR n IN 1 .. 3 LOOP
                RAISE NOTICE USING ERRCODE = 'SW000', MESSAGE = jsonb_build_object('progress', n, 'total', 3, 'message', 'step ' || n);
                RAISE NOTICE USING ERRCODE = 'SW000', MESSAGE = jsonb_build_object('progress', n, 'message', 'again');
                PERFORM pg_sleep(0.1);
            END LOOP;
            RAISE NOTICE 'not progress';
            RAISE NOTICE USING ERRCODE = 'SW000', MESSAGE = 'not JSON';
            RETURN '{"result": {}}';
        WHEN 'rounds' THEN
            done := coalesce((params #>> '{_meta,stepwise/again,done}')::int, 0) + 1;
            PERFORM pg_sleep((params ->> 'seconds')::float8);
            INSERT INTO stepwise.heard (what) VALUES ('round');
            IF done < (params ->> 'count')::int THEN
                RETURN jsonb_build_object('result', '{}'::jsonb, 'stepwise', jsonb_build_object('again', jsonb_build_object(
                    'state', jsonb_build_object('done', done), 'progress', jsonb_build_object('progress', done, 'message', 'round ' || done))));
            END IF;
            RETURN jsonb_build_object('result', jsonb_build_object('done', done, 'responses', params -> 'inputResponses'));
        WHEN 'wait' THEN
            INSERT INTO stepwise.heard (what) VALUES ('asked to wait');
            IF stepwise.heard(params ->> 'for') > 0 THEN
                RETURN '{"result": {"came": true}}';
            END IF;
            RETURN jsonb_build_object('result', '{}'::jsonb, 'stepwise', jsonb_build_object('wait', jsonb_build_object('ms', params -> 'ms')));
        WHEN 'ask' THEN
            IF params ? 'inputResponses' THEN
                RETURN CASE WHEN params ? 'count' THEN stepwise.stand_in('rounds', params, id)
                    ELSE jsonb_build_object('result', jsonb_build_object('responses', params -> 'inputResponses')) END;
            END IF;
            RETURN jsonb_build_object('result', jsonb_build_object('resultType', 'input_required', 'inputRequests',
                jsonb_build_object('first', question, 'second', question)));
        WHEN 'work' THEN
            RETURN jsonb_build_object('result', '{"task": 1}'::jsonb, 'stepwise', jsonb_build_object('work',
                jsonb_build_object('jsonrpc', '2.0', 'id', 7, 'method', CASE WHEN params ? 'count' THEN 'rounds' ELSE 'sleep' END, 'params', params)));
        WHEN 'tell' THEN
            RETURN '{"result": {}, "stepwise": {"tell": {"text": "a tenant is missing"}}}';
        WHEN 'resources/subscribe', 'subscriptions/listen' THEN
            RETURN jsonb_build_object('result', '{"ended": true}'::jsonb, 'stepwise', jsonb_build_object(
                'listen', jsonb_build_object('state', jsonb_build_object('known', stepwise.heard('news'), 'about', coalesce(params -> 'uri', id)), 'ms', 60000,
                'messages', CASE WHEN method = 'subscriptions/listen' THEN jsonb_build_array(jsonb_build_object('jsonrpc', '2.0', 'method', 'acknowledged')) ELSE '[]' END)));
        WHEN 'resources/unsubscribe' THEN
            RETURN '{"result": {}}';
        WHEN 'stepwise/changes' THEN
            RETURN jsonb_build_object('result', jsonb_build_object('state', params -> 'state' || jsonb_build_object('known', stepwise.heard('news')),
                'messages', (SELECT coalesce(jsonb_agg(jsonb_build_object('jsonrpc', '2.0', 'method', 'news', 'params', jsonb_build_object('number', n, 'about', params #> '{state,about}'))), '[]')
                             FROM generate_series((params #>> '{state,known}')::int + 1, stepwise.heard('news')) AS n)));
        WHEN 'fail' THEN
            IF nextval('stepwise.tries') < (params ->> 'times')::int + 1 THEN
                RAISE EXCEPTION USING ERRCODE = params ->> 'sqlstate', MESSAGE = 'failed on purpose', DETAIL = 'a detail', HINT = 'a hint';
            END IF;
            RETURN jsonb_build_object('result', jsonb_build_object('tries', (SELECT last_value FROM stepwise.tries)));
        ELSE
            RETURN jsonb_build_object('error', jsonb_build_object('code', -32601, 'message', 'no such method'));
    END CASE;
END $$;

CREATE FUNCTION stepwise.mcp(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF NOT request ? 'id' THEN
        INSERT INTO stepwise.heard (what) VALUES (request ->> 'method');
        RETURN NULL;
    END IF;
    RETURN jsonb_build_object('jsonrpc', '2.0', 'id', request -> 'id')
        || stepwise.stand_in(request ->> 'method', coalesce(request -> 'params', '{}'), request -> 'id');
END $$;
