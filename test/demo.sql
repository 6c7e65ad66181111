-- The story that "make demo" tells. psql runs it in an empty database, and stops at an error.
CREATE EXTENSION pg_stepwise;

\echo
\echo 'The extension is there:'
SELECT extname AS extension, extversion AS version FROM pg_extension WHERE extname = 'pg_stepwise';

\echo 'To try the rest by hand: "make psql" opens psql on a cluster like this one.'
