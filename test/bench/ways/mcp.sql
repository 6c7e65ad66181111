-- A model over MCP: submit_step_result also answers the next step. Where parameters are bound, the server puts the request together.
\if :phase = 0
@new_plan@
\set left :size
\set phase 1
\elif :phase = 1
@simple@ SELECT a.answer #>> '{result,structuredContent,stepId}' AS step, a.answer FROM stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_next_step", "arguments": {"plan_id": ":plan"}}}') AS a (answer) \gset
@bound@ SELECT a.answer #>> '{result,structuredContent,stepId}' AS step, a.answer FROM stepwise.mcp(format('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_next_step", "arguments": {"plan_id": "%s"}}}', :plan::text)::jsonb) AS a (answer) \gset
\set phase 2
\else
@simple@ SELECT a.answer #>> '{result,structuredContent,next,stepId}' AS step, a.answer FROM stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "submit_step_result", "arguments": {"step_id": ":step", "result": :result}}}') AS a (answer) \gset
@bound@ SELECT a.answer #>> '{result,structuredContent,next,stepId}' AS step, a.answer FROM stepwise.mcp(format('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "submit_step_result", "arguments": {"step_id": "%s", "result": %s}}}', :step::text, :result::text)::jsonb) AS a (answer) \gset
\set left :left - 1
\set phase case when :left = 0 then 0 else 2 end
\endif
