-- advance by its name, with JSON arguments. Where parameters are bound, the server puts the JSON together, since pgbench cannot.
\if :phase = 0
@new_plan@
\set left :size
\set phase 1
\elif :phase = 1
SELECT a.answer ->> 'stepId' AS step, a.answer FROM stepwise.get_next_step(@plan@) AS a (answer) \gset
\set phase 2
\else
@simple@ SELECT a.answer #>> '{next,stepId}' AS step, a.answer FROM stepwise.call('advance', '{"stepId": ":step", "result": :result}') AS a (answer) \gset
@bound@ SELECT a.answer #>> '{next,stepId}' AS step, a.answer FROM stepwise.call('advance', format('{"stepId": "%s", "result": %s}', :step::text, :result::text)::jsonb) AS a (answer) \gset
\set left :left - 1
\set phase case when :left = 0 then 0 else 2 end
\endif
