# shellcheck shell=bash
#
# What the tests of drivers use: Node with the package pg, Python with psycopg 3, and PgBouncer. test/run includes
# this. The tests that need what cannot be had are skipped, and say so.

# Set and export NODE, PYTHON and PGBOUNCER, each to a program that the server's user can run, or to nothing.
find_drivers()
{
	copy_node_modules
	NODE=$(first_that_runs 'require("pg")' -e node /usr/bin/node)
	PYTHON=$(first_that_runs 'import psycopg' -c /usr/bin/python3 python3)
	PGBOUNCER=$(PATH=$PATH:/usr/sbin command -v pgbouncer) || true
	export NODE PYTHON PGBOUNCER
}

# Print the first of the programs that can run a script: first_that_runs SCRIPT OPTION PROGRAM ...
first_that_runs()
{
	local script=$1 option=$2 program
	shift 2
	for program in "$@"; do
		if as_server "$program" "$option" "$script" >/dev/null 2>&1; then
			echo "$program"
			return
		fi
	done
}

# Get what is missing: pg from npm if npm is there, the rest from packages of the distribution.
bring_drivers()
{
	find_drivers
	if [ -z "$NODE" ] && command -v npm >/dev/null; then
		npm_install_pg
	elif [ -z "$NODE" ]; then
		want nodejs node-pg
	fi
	[ -n "$PYTHON" ] || want python3-psycopg
	[ -n "$PGBOUNCER" ] || want pgbouncer
	find_drivers
}

NODE_FOLDER=$REPO/build/node			# it is kept, so that the network is used once

npm_install_pg()
{
	mkdir -p "$NODE_FOLDER" 2>/dev/null || return 0
	patiently output_to "$RUN/log/npm.log" timeout -k 5 60 npm install --prefix "$NODE_FOLDER" \
		--no-audit --no-fund --fetch-retries=1 pg@8 || say "npm could not install pg; build/log has its log"
}

# Node looks for packages in the folders above a program.
copy_node_modules()
{
	if [ -d "$NODE_FOLDER/node_modules/pg" ]; then
		cp -r "$NODE_FOLDER/node_modules" "$RUN/work"
	fi
}
