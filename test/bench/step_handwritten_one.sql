-- One step of one plan; when the client's plan is done, its next one from the pool.
-- Handwritten, in one call.
\if :left = 0
SELECT plan_id AS plan FROM bench.pool WHERE way = :way AND client = :client_id AND n = :n \gset
\set n :n + 1
\set left :size
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.claim(:plan) \gset
\endif
\set left :left - 1
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.advance(:step, :result) \gset
