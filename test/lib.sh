# shellcheck shell=bash
#
# The ground on which test/run, test/demo, test/psql and their kin stand: the packages, a
# private build, a private throwaway cluster, and the removal of all of it. A script says
#
#	. "$(dirname "$0")/lib.sh"
#	open_run                    # $RUN, removed again however the script ends
#	need server devel           # installs what is missing
#	build_extension test        # or "release": without assertions
#	start_cluster
#	as_client psql -f ...       # any client program, connected to the cluster
#
# Nothing is installed into the system but packages, nothing is shared between two runs but
# the compiled objects, and no cluster but the run's own is ever talked to.

set -euo pipefail
umask 022					# the server's user must be able to read what we make

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$REPO"

KEEP=${KEEP:-}
WANTED_PG_CONFIG=${PG_CONFIG:-pg_config}

# PGHOST, PGDATA, PGOPTIONS, ...: somebody's own cluster is none of our business.
unset "${!PG@}"
# Variables of the make that called us are not meant for the make that we call.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
# The same messages and the same order of names everywhere.
export LC_ALL=C.UTF-8

say()
{
	echo "pg_stepwise: $*"
}

die()
{
	say "$*" >&2
	exit 1
}

# Run a command so that a signal to this script is obeyed at once: bash puts off its traps
# until a command in the foreground has ended, but not while it waits for one behind it.
# The command gets a process group of its own (-m), so that all of it can be ended.
JOB=
patiently()
{
	local status=0
	set -m
	"$@" <&0 &
	JOB=$!
	set +m
	wait "$JOB" || status=$?
	JOB=
	return "$status"
}

# The same, with the output in a log of the run, shown if the command fails.
quietly()
{
	local log=$RUN/log/$1.log
	shift
	patiently output_to "$log" "$@" || { cat "$log" >&2; return 1; }
}

output_to()
{
	local log=$1
	shift
	"$@" >"$log" 2>&1
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

# --- the run's folder, and how everything ends -------------------------------

# Make $RUN: data, log, socket, installed files, results. It lies in /tmp whatever TMPDIR
# says: the path of a socket must be short, and the server's user must get there.
RUN=
open_run()
{
	RUN=$(mktemp -d /tmp/pg_stepwise.XXXXXX)
	mkdir "$RUN/log"
	trap at_exit EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 141' PIPE
	trap 'exit 143' TERM
}

# A script with more to do at its end has its own at_exit, and calls close_run in it.
at_exit()
{
	close_run
}

# End every process of the run and remove its folder.
close_run()
{
	trap '' HUP INT PIPE TERM
	end_processes
	if [ -n "$KEEP" ]; then
		say "kept: $RUN"
	else
		rm -rf "$RUN"
	fi
}

# All that a run starts (servers, clients, test drivers) has its working directory inside
# $RUN; so this finds them all, and never a process of anybody else.
processes_of_run()
{
	find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$RUN" -o -lname "$RUN/*" \) 2>/dev/null | cut -d/ -f3
}

# A killed server leaves its file behind, and its number may by now be another's process.
postmasters_of_run()
{
	find "$RUN" -name postmaster.pid -exec head -n 1 {} \; 2>/dev/null | grep -Fx -f <(processes_of_run)
}

signal()
{
	local name=$1
	shift
	[ $# -eq 0 ] || kill -s "$name" -- "$@" 2>/dev/null || true
}

end_processes()
{
	local tries pid
	[ -z "$JOB" ] || signal TERM "-$JOB"

	# Drivers first, or they would start new servers; then the servers, by their immediate
	# shutdown, which gives shared memory back; at last whatever did not obey.
	for pid in $(processes_of_run); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = postgres ] || signal KILL "$pid"
	done
	for ((tries = 0; tries < 50; tries++)); do
		[ -n "$(processes_of_run)" ] || return 0
		# shellcheck disable=SC2046	# process ids are words
		signal QUIT $(postmasters_of_run)
		sleep 0.1
	done
	# shellcheck disable=SC2046
	signal KILL $(processes_of_run)
}

# --- PostgreSQL: which one, and what is missing ------------------------------

is_complete()
{
	local bindir
	bindir=$("$1" --bindir 2>/dev/null) && [ -x "$bindir/postgres" ] && [ -e "$("$1" --pgxs)" ]
}

newest_installed_version()
{
	local server
	for server in /usr/lib/postgresql/*/bin/postgres; do
		[ ! -x "$server" ] || echo "$server" | cut -d/ -f5
	done | sort -n | tail -n 1
}

version_of_distribution()
{
	{ apt-cache depends postgresql 2>/dev/null || true; } | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p'
}

# Set PG_CONFIG: the one asked for, else the one at hand, else that of the newest server
# installed, else that of the server which the distribution would install.
choose_postgres()
{
	local version
	PG_CONFIG=$WANTED_PG_CONFIG
	if [ "$PG_CONFIG" != pg_config ] || is_complete "$PG_CONFIG"; then
		return
	fi
	version=$(newest_installed_version)
	if [ -z "$version" ]; then
		version=$(version_of_distribution)
	fi
	if [ -z "$version" ] && has_apt; then
		update_package_lists
		version=$(version_of_distribution)
	fi
	[ -n "$version" ] || die "found neither a PostgreSQL server nor a package of one"
	PG_CONFIG=/usr/lib/postgresql/$version/bin/pg_config
}

# The packages that are missing for the needs named. Looks at files, not at the package
# database, so that a PostgreSQL from source will do.
missing_packages()
{
	local need version
	version=$(packaged_version)
	for need in "$@"; do
		case $version/$need in
			*/prove) perl -MTAP::Harness -e1 2>/dev/null || echo perl ;;
			*/ipc-run) perl -MIPC::Run -e1 2>/dev/null || echo libipc-run-perl ;;
			/*) ;;				# not from a package: no package would add to it
			*/server) [ -x "$(pg --bindir)/initdb" ] || echo "postgresql-$version" ;;
			*/devel) [ -e "$(pg --pgxs)" ] || echo "postgresql-server-dev-$version" ;;
			*/pgtap) [ -e "$(pg --sharedir)/extension/pgtap.control" ] || echo "postgresql-$version-pgtap" ;;
			*) die "need: unknown: $need" ;;
		esac
	done
}

pg()
{
	"$PG_CONFIG" "$1" 2>/dev/null || true
}

# The major version of a PostgreSQL that is, or would be, where Debian's packages put it.
packaged_version()
{
	local bindir
	bindir=$(pg --bindir)
	echo "${bindir:-$PG_CONFIG}" | sed -n 's,^/usr/lib/postgresql/\([0-9]*\)/.*,\1,p'
}

# Install what is missing for the needs named; without a missing package, no network is used.
need()
{
	local packages
	# Of two runs at once, one installs. A lock of our own, as "apt-get update" waits for none.
	exec 9</
	patiently flock 9
	choose_postgres
	mapfile -t packages < <(missing_packages "$@")
	if [ ${#packages[@]} -gt 0 ]; then
		install_packages "${packages[@]}" 9<&-	# no service that apt starts may hold the lock
	fi
	exec 9<&-
	use_postgres
}

has_apt()
{
	command -v apt-get >/dev/null
}

update_package_lists()
{
	[ ! -e "$RUN/log/apt-update.log" ] || return 0
	quietly apt-update as_root apt-get update -qq || say "going on with the package lists that are there"
}

install_packages()
{
	has_apt || die "please install $*"
	say "installing $*"
	update_package_lists
	quietly apt-install as_root bash -c "$(declare -f apt_install); apt_install \"\$@\"" apt_install "$@" ||
		die "could not install $*"
}

# Runs as root, in a shell of its own. Not to be interrupted, as nobody wants half a package.
# A server's package would create and start a cluster "main"; not for our sake.
apt_install()
{
	local conf_dir=/etc/postgresql-common/createcluster.d
	local conf=$conf_dir/pg_stepwise.conf status=0
	trap '' HUP INT TERM
	mkdir -p $conf_dir
	echo 'create_main_cluster = false' >$conf
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=600 "$@" </dev/null || status=$?
	rm -f $conf
	rmdir --ignore-fail-on-non-empty -p $conf_dir
	return $status
}

# Once PostgreSQL is there: its programs first in the path, and who will run its server.
use_postgres()
{
	BINDIR=$(pg --bindir)
	[ -n "$BINDIR" ] || die "$PG_CONFIG is no pg_config"
	# shellcheck disable=SC2034	# for test/run: pg_regress, the isolation tester, Perl modules
	DRIVERS=$(pg --pkglibdir)/pgxs/src/test
	export PATH="$BINDIR:$PATH"

	SERVER_USER=$(id -un)
	AS_SERVER=(env "HOME=$RUN")
	if [ "$(id -u)" -eq 0 ]; then
		SERVER_USER=nobody
		! id postgres >/dev/null 2>&1 || SERVER_USER=postgres
		AS_SERVER=(setpriv "--reuid=$SERVER_USER" "--regid=$(id -g "$SERVER_USER")" --init-groups
			env "HOME=$RUN")
	fi
	own_by_server "$RUN"
}

# Give what root made to the server's user.
own_by_server()
{
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVER_USER" "$@"
}

# --- the build ---------------------------------------------------------------

# Build the extension as "test" (strict, with assertions) or "release", and install it
# into $RUN/install. Objects are kept under build/, so a second run compiles what changed.
build_extension()
{
	local kind=$1 tree options=(with_llvm=no)
	[ "$kind" = release ] || options+=(STRICT=1)
	tree=$REPO/build/$kind-$(pg --version | sed 's/^[^0-9]*\([0-9.]*\).*/\1/')
	if ! mkdir -p "$tree" 2>/dev/null || [ ! -w "$tree" ]; then
		tree=$RUN/build
		mkdir "$tree"
	fi
	say "building for $(pg --version)"
	patiently build_and_install "$tree" "${options[@]}" || die "the build failed"
}

build_and_install()
{
	local tree=$1
	shift
	exec 9<"$tree"
	flock 9
	mirror_sources "$tree"
	set -- make -s --no-print-directory -C "$tree" -j "$(nproc)" "PG_CONFIG=$PG_CONFIG" "$@" install
	"$@" "DESTDIR=$RUN/install" || return
	if [ -z "$(extension_settings)" ]; then
		say "this server loads extensions only from its own folders: installing there"
		as_root "$@"
	fi
}

# Links to the sources, for a build beside the user's own, whose objects are not taken.
mirror_sources()
{
	local tree=$1 file
	find "$tree" -type l -delete
	ln -s "$REPO"/{Makefile,pg_stepwise.control,sql} "$tree"
	find src \( -name '*.[ch]' -o -name Makefile \) | while read -r file; do
		mkdir -p "$tree/$(dirname "$file")"
		ln -s "$REPO/$file" "$tree/$file"
	done
}

# The settings that let a server find the extension in $RUN/install: Debian's own up to 17,
# PostgreSQL's from 18 on. Nothing if it has neither.
extension_settings()
{
	local known
	known=$(postgres --describe-config | cut -f1)
	if grep -qx extension_destdir <<<"$known"; then
		echo "extension_destdir = '$RUN/install'"
	elif grep -qx extension_control_path <<<"$known"; then
		echo "extension_control_path = '$RUN/install$(pg --sharedir):\$system'"
		echo "dynamic_library_path = '$RUN/install$(pg --pkglibdir):\$libdir'"
	fi
}

# --- the cluster -------------------------------------------------------------

# Run a command as the server's user, in the folder that is his: $RUN/work.
as_server()
{
	(cd "$RUN/work" && exec "${AS_SERVER[@]}" "$@")
}

# The same for a client that may take its time.
as_client()
{
	patiently as_server "$@"
}

start_cluster()
{
	mkdir "$RUN/work" "$RUN/socket"
	chmod 700 "$RUN/socket"
	{ cat test/postgresql.conf; extension_settings; } >"$RUN/settings.conf"
	own_by_server "$RUN/work" "$RUN/socket"

	quietly initdb as_server initdb -D "$RUN/data" -U postgres -A trust --locale=C --encoding=UTF8 --no-sync ||
		die "initdb failed"
	as_server sh -c 'cat ../settings.conf >>../data/postgresql.conf'
	quietly server as_server pg_ctl -s -w -D "$RUN/data" -o "-c listen_addresses='' -k '$RUN/socket'" start ||
		die "the server did not start"
	export PGHOST=$RUN/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}
