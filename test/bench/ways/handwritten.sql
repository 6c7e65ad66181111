-- By hand, two calls a step.
\if :phase = 0
@new_plan@
\set left :size
\set phase 1
\elif :phase = 1
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.claim(@plan@) \gset
\set phase 2
\else
SELECT handwritten.complete(@step@, @result@);
\set left :left - 1
\set phase case when :left = 0 then 0 else 1 end
\endif
