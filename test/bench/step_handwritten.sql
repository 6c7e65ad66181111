-- One step of one plan; when the client's plan is done, its next one from the pool.
-- Handwritten, in two calls.
\if :left = 0
SELECT plan_id AS plan FROM bench.pool WHERE way = :way AND client = :client_id AND n = :n \gset
\set n :n + 1
\set left :size
\endif
\set left :left - 1
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.claim(:plan) \gset
SELECT handwritten.complete(:step, :result);
