-- Handwritten with two calls per step. Does one step; when the plan of the client is done, takes the next one from the pool.
\if :left = 0
SELECT plan_id AS plan FROM bench.pool WHERE way = :way AND client = :client_id AND n = :n \gset
\set n :n + 1
\set left :size
\endif
\set left :left - 1
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.claim(:plan) \gset
SELECT handwritten.complete(:step, :result);
