-- help(): the texts are there, and name only what exists.

\set ECHO none
\i test/agent.sql
CREATE TEMP TABLE page AS
SELECT t AS topic, stepwise.help(t) AS text FROM unnest('{agent,definitions,gates,errors}'::text[]) AS t;
-- Calls that the texts name, each with the arguments between its parentheses.
CREATE TEMP TABLE named AS
SELECT p.topic, m[1] AS function, regexp_split_to_array(m[2], ',\s*') AS arguments
FROM page AS p, regexp_matches(p.text, '\m([a-z_0-9]+)\(([^)]*)\)', 'g') AS m;
\set ECHO all

SELECT stepwise.help() = stepwise.help('agent'), stepwise.help(NULL) = stepwise.help();
-- the sheet fits into a window
SELECT count(*) BETWEEN 40 AND 80, max(length(line)) <= 100 FROM regexp_split_to_table(rtrim(stepwise.help(), E'\n'), '\n') AS line;
SELECT topic, length(text) BETWEEN 1000 AND 6000, text ~ '^[\x20-\x7e\n]*$' FROM page;
-- every function exists, with these arguments, and is for agents: no row
SELECT n.* FROM named AS n
WHERE NOT EXISTS (
    SELECT FROM pg_proc AS p JOIN stepwise.grants AS g ON g.statement = format('GRANT EXECUTE ON ROUTINE %s', p.oid::regprocedure)
    WHERE p.pronamespace = 'stepwise'::regnamespace AND p.proname = n.function
      AND (n.arguments = '{""}' OR n.arguments <@ p.proargnames));
SELECT topic, count(*) > 3 FROM named GROUP BY topic ORDER BY topic;
-- a call with what the text gives lacks no argument: no row
SELECT n.* FROM named AS n JOIN pg_proc AS p ON p.pronamespace = 'stepwise'::regnamespace AND p.proname = n.function
WHERE NOT p.proargnames[1:p.pronargs - p.pronargdefaults] <@ n.arguments;
-- every status of the loop is explained: no row
SELECT s.status FROM unnest('{step_ready,plan_complete,plan_failed,plan_cancelled,awaiting_review,paused,no_pending_steps}'::text[]) AS s (status)
WHERE strpos(stepwise.help(), s.status) = 0;
-- the topics that the sheet names, and the definition in it, are right
SELECT m[1] FROM regexp_matches(stepwise.help(), 'help\(topic\) with ''(\w+)''', 'g') AS m WHERE stepwise.help(m[1]) IS NOT NULL;
SELECT stepwise.validate_definition(substring(stepwise.help('definitions') FROM '\n\n(\{.*?\})\n\n')::jsonb) -> 'errors';
SELECT pg_temp.try($$stepwise.help('gate')$$);
SELECT pg_temp.try($$stepwise.help('')$$);
\set VERBOSITY default
SELECT stepwise.help('gate');
SELECT stepwise.help('everything');
-- a reader may ask, and needs no tenant
CREATE ROLE regress_help_reader;
SELECT stepwise.grant_reader('regress_help_reader') IS NOT NULL;
SET ROLE regress_help_reader;
SELECT stepwise.help() <> '', stepwise.call('help', '{"topic": "errors"}') #>> '{}' = stepwise.help('errors');
RESET ROLE;
