-- The order of a sequence: who is held back by whom, for agents and for a run.

\set ECHO none
\i test/agent.sql
\set ECHO all

CREATE SCHEMA regress_order;
GRANT USAGE ON SCHEMA regress_order TO PUBLIC;
CREATE FUNCTION regress_order.say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
SELECT stepwise.register_tool('order_say', 'regress_order.say(jsonb)') ->> 'name';

-- ---------- a step in progress ----------

-- an agent may pass it; a run does not
SELECT pg_temp.make('passes', '[{"name": "a"}, {"name": "b", "tool": "order_say"}, {"name": "c", "tool": "order_say"}]');
SELECT pg_temp.next('passes');
SELECT stepwise.run(pg_temp.plan('passes')) -> 'steps';
SELECT pg_temp.next('passes');
SELECT stepwise.run(pg_temp.plan('passes')) -> 'steps';
SELECT pg_temp.submit('passes', 'a'), pg_temp.submit('passes', 'b');
SELECT stepwise.run(pg_temp.plan('passes')) ->> 'task_status';

-- ---------- strictOrder ----------

SELECT stepwise.create_plan('strict', 'test', '[{"name": "a"}, {"name": "b"}]', strict_order => true) ->> 'status';
SELECT pg_temp.next('strict', 'w1'), pg_temp.next('strict', 'w2');
SELECT pg_temp.try($$pg_temp.submit('strict', 'b')$$);
-- a claim that stalls, or whose lease expires, is handed out again, never the next step
UPDATE stepwise.step SET active_at = now() - interval '2 hours' WHERE id = pg_temp.step('strict', 'a');
SELECT pg_temp.next('strict', 'w2'), pg_temp.next('strict', 'w3');
SELECT stepwise.submit_step_result(pg_temp.step('strict', 'a'), '1', attempt => 2) ->> 'stepStatus';
SELECT pg_temp.next('strict', 'w3');
SELECT stepwise.release_step(pg_temp.step('strict', 'b'), 1) ->> 'stepStatus';
SELECT stepwise.get_next_step(pg_temp.plan('strict'), 'w3', '1 microsecond') ->> 'attempt';
SELECT pg_temp.next('strict', 'w4');
-- in a workflow too; only in a sequence
SELECT pg_temp.try($$stepwise.create_plan('x', 'g', '[{"name": "a", "dependsOn": []}]', strict_order => true)$$);
SELECT pg_temp.try($$stepwise.define_workflow('{"name": "x", "strictOrder": "yes", "steps": [{}]}')$$);
SELECT stepwise.define_workflow('{"name": "order strict", "strictOrder": true, "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'version';
SELECT pg_temp.make('outer', '[{"name": "h", "workflow": "order strict"}, {"name": "z"}]');
SELECT pg_temp.next('outer'), pg_temp.next('outer');

-- ---------- a nested plan ----------

-- what follows waits until the nested plan ends, also while it only has claims
SELECT stepwise.define_workflow('{"name": "order inner", "steps": [{"name": "x"}]}') ->> 'version';
SELECT pg_temp.make('nested', '[{"name": "h", "workflow": "order inner"}, {"name": "z"}]');
SELECT pg_temp.next('nested'), pg_temp.next('nested');
SELECT pg_temp.try($$pg_temp.submit('nested', 'z')$$);
SELECT stepwise.submit_step_result(s.id, '1') ->> 'planStatus' FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('nested') AND s.name = 'x';
SELECT pg_temp.next('nested');
-- with dependencies it holds back only what depends on it
SELECT pg_temp.make('graph', '[{"name": "h", "workflow": "order inner", "dependsOn": []}, {"name": "z", "dependsOn": []}]');
SELECT pg_temp.next('graph'), pg_temp.next('graph');

-- ---------- a step that a review sent back ----------

SELECT pg_temp.make('back', '[{"name": "a"}, {"name": "b"}]');
SELECT stepwise.get_next_step(pg_temp.plan('back'), 'w1', '1 hour') ->> 'attempt';
SELECT stepwise.request_user_review(pg_temp.step('back', 'a'), 'Look', worker => 'w1') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('back', 'a'), 'modify', 'more') ->> 'stepStatus';
SELECT s.status, s.attempt, s.worker, s.holder, s.lease_expires_at, s.sent_back, s.holds FROM stepwise.step AS s WHERE s.id = pg_temp.step('back', 'a');
-- nobody holds it, and it does not stall
UPDATE stepwise.step SET active_at = now() - interval '1 day' WHERE id = pg_temp.step('back', 'a');
SELECT stepwise.get_plan_status(pg_temp.plan('back')) ->> 'stalled';
SELECT stepwise.reclaim_stalled() ->> 'count';
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('back', 'a'))$$);
SELECT pg_temp.try($$stepwise.heartbeat(pg_temp.step('back', 'a'), 1)$$);
-- it holds back the next step, and is the next to be handed out, to whoever asks first
SELECT pg_temp.try($$pg_temp.submit('back', 'b')$$);
SELECT x ->> 'message', x -> 'nextCall' ->> 'function' FROM stepwise.why(pg_temp.plan('back')) AS x;
SELECT pg_temp.next('back', 'w2');
SELECT pg_temp.next('back', 'w1');
SELECT stepwise.submit_step_result(pg_temp.step('back', 'a'), '1', attempt => 2) ->> 'stepStatus';
-- its former agent may still submit with its attempt, as long as nobody else has it
SELECT pg_temp.make('late', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('late');
SELECT stepwise.request_user_review(pg_temp.step('late', 'a'), 'Look') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('late', 'a'), 'modify', 'more') ->> 'stepStatus';
SELECT stepwise.submit_step_result(pg_temp.step('late', 'a'), '1', attempt => 1) ->> 'stepStatus';
SELECT pg_temp.next('late');
-- at any depth, before everything else in the tree
SELECT stepwise.define_workflow('{"name": "order deep", "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'version';
SELECT pg_temp.make('deep', '[{"name": "p", "dependsOn": []}, {"name": "h", "workflow": "order deep", "dependsOn": []}, {"name": "q", "dependsOn": []}]');
SELECT pg_temp.next('deep'), pg_temp.next('deep');
SELECT stepwise.request_user_review(s.id, 'Look') ->> 'stepStatus' FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('deep') AND s.status = 'in_progress' AND s.workflow IS NULL ORDER BY s.name DESC LIMIT 1;
SELECT stepwise.submit_user_decision(k.checkpoint_id, 'modify', 'more') ->> 'stepStatus' FROM stepwise.checkpoints AS k WHERE k.root_plan_id = pg_temp.plan('deep');
SELECT sent_back FROM stepwise.plan WHERE id = pg_temp.plan('deep');
SELECT pg_temp.next('deep'), pg_temp.next('deep'), pg_temp.next('deep');
SELECT sent_back FROM stepwise.plan WHERE id = pg_temp.plan('deep');
-- whatever maxAttempts says
SELECT pg_temp.make('once', '[{"name": "a", "maxAttempts": 1}]');
SELECT pg_temp.next('once');
SELECT stepwise.request_user_review(pg_temp.step('once', 'a'), 'Look') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('once', 'a'), 'modify', 'more') ->> 'stepStatus';
SELECT pg_temp.next('once');

-- ---------- submit of a pending step ----------

-- one that was claimed before is not taken
SELECT pg_temp.make('claimed', '[{"name": "a"}]');
SELECT pg_temp.next('claimed');
SELECT stepwise.release_step(pg_temp.step('claimed', 'a')) ->> 'stepStatus';
SELECT pg_temp.try($$pg_temp.submit('claimed', 'a')$$);

SELECT pg_temp.unsound();
DROP SCHEMA regress_order CASCADE;
SELECT stepwise.drop_tool('order_say') ->> 'dropped';
