# shellcheck shell=bash
#
# Build the fuzz target and run it on the cluster that test/lib.sh has started. test/fuzz/run
# uses this for long runs, and test/run with few cases and a fixed seed.

# Number of lines "ok ..." that a run prints: one for each test in fuzz.sql, and one of fuzz_frame.
# shellcheck disable=SC2034	# the sourcing script uses it
FUZZ_TESTS=7

# fuzz CASES SEED
fuzz()
{
	build_fuzz
	as_client createdb fuzz
	as_client psql -X -q -d fuzz -c 'CREATE EXTENSION pg_stepwise'
	as_client psql -X -q -A -t -d fuzz -v "module=$RUN/fuzz/stepwise_fuzz" -v "cases=$1" -v "seed=$2" \
		-f "$RUN/fuzz/fuzz.sql"
	fuzz_frame "$1" "$2"
}

# The input of stepwise-mcp, where that is built.
fuzz_frame()
{
	if [ ! -x "$RUN/install$BINDIR/stepwise-mcp" ]; then
		echo "ok frame: SKIPPED, since stepwise-mcp was not built"
		return
	fi
	make -s --no-print-directory -C "$RUN/fuzz" -f "$REPO/test/fuzz/frame.mk" "PG_CONFIG=$PG_CONFIG" ||
		die "the fuzz target of stepwise-mcp does not build"
	as_client "$RUN/fuzz/fuzz_frame" "$1" "$2"
}

build_fuzz()
{
	mkdir "$RUN/fuzz"
	cp test/fuzz/*.sql "$RUN/fuzz"
	make -s --no-print-directory -C "$RUN/fuzz" -f "$REPO/test/fuzz/Makefile" -j "$(nproc)" \
		"PG_CONFIG=$PG_CONFIG" with_llvm=no || die "the fuzz target does not build"
	own_by_server "$RUN/fuzz"
}
