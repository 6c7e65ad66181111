-- The extension with two calls per step. Does one step; when the plan of the client is done, takes the next one from the pool.
\if :left = 0
SELECT plan_id AS plan FROM bench.pool WHERE way = :way AND client = :client_id AND n = :n \gset
\set n :n + 1
\set left :size
\endif
\set left :left - 1
SELECT a.answer ->> 'stepId' AS step, a.answer FROM stepwise.get_next_step(:plan) AS a (answer) \gset
SELECT stepwise.submit_step_result(:step, :result);
