-- get_next_step and submit_step_result.
\if :phase = 0
@new_plan@
\set left :size
\set phase 1
\elif :phase = 1
SELECT a.answer ->> 'stepId' AS step, a.answer FROM stepwise.get_next_step(@plan@) AS a (answer) \gset
\set phase 2
\else
SELECT stepwise.submit_step_result(@step@, @result@);
\set left :left - 1
\set phase case when :left = 0 then 0 else 1 end
\endif
