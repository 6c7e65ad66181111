-- run, with a tool in the database that does nothing: all steps in one call.
\if :phase = 0
@new_plan@
\set phase 1
\else
SELECT stepwise.run(@plan@);
\set phase 0
\endif
