-- The extension with one call per step. Does one step; when the plan of the client is done, takes the next one from the pool.
\if :left = 0
SELECT plan_id AS plan FROM bench.pool WHERE way = :way AND client = :client_id AND n = :n \gset
\set n :n + 1
\set left :size
SELECT a.answer ->> 'stepId' AS step, a.answer FROM stepwise.get_next_step(:plan) AS a (answer) \gset
\endif
\set left :left - 1
SELECT a.answer #>> '{next,stepId}' AS step, a.answer FROM stepwise.advance(:step, :result) AS a (answer) \gset
