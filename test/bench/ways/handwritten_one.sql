-- By hand, one call a step.
\if :phase = 0
@new_plan@
\set left :size
\set phase 1
\elif :phase = 1
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.claim(@plan@) \gset
\set phase 2
\else
SELECT step_id AS step, name, instructions, arguments, attempt FROM handwritten.advance(@step@, @result@) \gset
\set left :left - 1
\set phase case when :left = 0 then 0 else 2 end
\endif
