-- Who may decide: a separate reviewer is told by roles, whatever the names that callers give.

\set ECHO none
\i test/agent.sql
\set ECHO all
SELECT 1;
