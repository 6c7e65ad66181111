# shellcheck shell=bash
#
# Functions that test/run, test/demo, test/psql and similar scripts share. They install the
# packages, build the extension, start a temporary cluster, and remove all of it at the end.
# A script contains
#
#	. "$(dirname "$0")/lib.sh"
#	open_run                    # makes $RUN, which is removed when the script ends
#	need server devel compiler  # installs missing packages
#	build_extension test        # or "release": without assertions
#	start_cluster
#	as_client psql -f ...       # any client program, connected to the cluster
#
# Only packages are installed into the system. Two runs share only the compiled objects. A run
# connects only to its own cluster.

set -euo pipefail
umask 022					# the server's user must be able to read our files

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$REPO"

KEEP=${KEEP:-}
WANTED_PG_CONFIG=${PG_CONFIG:-pg_config}
APT_PATIENCE=${APT_PATIENCE:-600}		# seconds to wait for another apt

# PGHOST, PGDATA, PGOPTIONS and so on belong to the user's own cluster.
unset "${!PG@}"
# Variables of the calling make must not reach the make that we call.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
# Messages, sort order and the encoding of databases must be the same everywhere. PostgreSQL's test modules delete LC_ALL.
export LC_ALL=C.UTF-8 LANG=C.UTF-8

say()
{
	echo "pg_stepwise: $*"
}

die()
{
	say "$*" >&2
	exit 1
}

# Run a command so that this script reacts to a signal at once. bash delays its traps until a
# foreground command has ended, but not while it waits for a background command.
# The command gets its own process group (-m), so that all its processes can be ended.
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

# The same, with the output in a log file of the run. The log is shown if the command fails.
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

# --- the folder of the run, and cleaning up ----------------------------------

# Make $RUN, which holds data, logs, socket, installed files and results. It is in /tmp even if
# TMPDIR is set, since the path of a socket must be short and the server's user needs access.
RUN=
open_run()
{
	RUN=$(mktemp -d /tmp/pg_stepwise.XXXXXX)
	mkdir "$RUN/log"
	trap at_exit EXIT
	trap 'end_run 129' HUP
	trap 'end_run 130' INT
	trap 'end_run 141' PIPE
	trap 'end_run 143' TERM
}

# End this script because of a signal. A second one, which "make" may send, must not stop at_exit.
end_run()
{
	trap '' HUP INT PIPE TERM
	exit "$1"
}

# A script that has more to clean up defines its own at_exit, which calls close_run.
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

# Every process that a run starts (server, client, test driver) has its working directory
# inside $RUN. So this finds all of them, and no other process.
processes_of_run()
{
	find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$RUN" -o -lname "$RUN/*" \) 2>/dev/null | cut -d/ -f3
}

# A killed server leaves its postmaster.pid, and its process id may have been reused since.
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

	# End the drivers first, since they could start new servers. Then end the servers by an
	# immediate shutdown, which releases shared memory. At last kill the processes that remain.
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

# --- choose PostgreSQL, and install missing packages -------------------------

# A script names its needs. Whether a need is met is decided by files, not by the package
# database, so that a PostgreSQL built from source works too. We look at the files that are
# really used: Debian's client package contains pg_config, pgxs.mk and pg_regress, and still
# cannot build an extension.
has()
{
	local bindir
	bindir=$(pg --bindir)
	case $1 in
		server) are_there "$bindir"/{postgres,initdb,pg_ctl,psql} ;;
		devel) are_there "$(pg --pgxs)" "$(pg --includedir-server)/postgres.h" ;;
		compiler) can_compile ;;
		drivers) are_there "$(drivers)"/{regress/pg_regress,isolation/pg_isolation_regress,isolation/isolationtester,perl/PostgreSQL/Test/Cluster.pm} ;;
		pgtap) are_there "$(pg --sharedir)/extension/pgtap.control" ;;
		prove) perl -MTAP::Harness -MTest::More -MTime::HiRes -MJSON::PP -e1 2>/dev/null ;;
		ipc-run) perl -MIPC::Run -e1 2>/dev/null ;;
		*) die "need: unknown: $1" ;;
	esac
}

are_there()
{
	local file
	for file in "$@"; do
		[ -e "$file" ] || return
	done
}

# A compiler may be installed without the headers of libc, since its package only recommends them.
can_compile()
{
	local compiler
	read -r -a compiler <<<"$(pg --cc)"
	[ ${#compiler[@]} -gt 0 ] || compiler=(gcc)
	command -v make >/dev/null && echo '#include <stdio.h>' | "${compiler[@]}" -E - >/dev/null 2>&1
}

# The folder of pg_regress, the isolation tester and the Perl modules.
drivers()
{
	echo "$(pg --pkglibdir)/pgxs/src/test"
}

# Whether the PostgreSQL of a pg_config has both a server and the files that a build needs.
is_complete()
{
	local PG_CONFIG=$1
	has server && has devel
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

# Set PG_CONFIG. The choices are, in this order: the one that was asked for, the one in the path,
# that of the newest installed server, that of the server which the distribution would install.
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

# The packages that are missing for the given needs.
missing_packages()
{
	local need
	for need in "$@"; do
		has "$need" || package_for "$need"
	done
}

package_for()
{
	local version
	version=$(packaged_version)
	case $version/$1 in
		*/compiler) printf '%s\n' gcc libc6-dev make ;;
		*/prove) echo perl ;;
		*/ipc-run) echo libipc-run-perl ;;
		/server | /devel) die "$PG_CONFIG: this PostgreSQL is not from a package, and lacks its ${1/devel/server headers}" ;;
		/*) say "$PG_CONFIG: this PostgreSQL lacks $1; what needs it will fail" >&2 ;;
		*/server) echo "postgresql-$version" ;;
		*/devel) echo "postgresql-server-dev-$version" ;;
		*/drivers) echo "postgresql-client-$version" ;;
		*/pgtap) echo "postgresql-$version-pgtap" ;;
	esac
}

pg()
{
	"$PG_CONFIG" "$1" 2>/dev/null || true
}

# The major version of a PostgreSQL in the folder of Debian's packages, installed or not.
packaged_version()
{
	local bindir
	bindir=$(pg --bindir)
	echo "${bindir:-$PG_CONFIG}" | sed -n 's,^/usr/lib/postgresql/\([0-9]*\)/.*,\1,p'
}

# Install what the given needs lack. If no package is missing, the network is not used.
need()
{
	local missing packages
	# Two concurrent runs must not install at the same time. Hold our own lock meanwhile.
	exec 9</
	patiently flock 9
	choose_postgres
	missing=$(missing_packages "$@")
	if [ -n "$missing" ]; then
		read -r -d '' -a packages <<<"$missing" || true
		install_packages "${packages[@]}" 9<&-	# a service that apt starts must not inherit the lock
		[ -z "$(missing_packages "$@" 2>/dev/null)" ] || die "installed ${packages[*]}, but files are still missing"
	fi
	exec 9<&-
	use_postgres
}

# Install packages that the tests can do without, unless that needs a password or fails.
want()
{
	has_apt && as_root true 2>/dev/null || return 0
	exec 9</
	patiently flock 9
	(install_packages "$@" 9<&-) || say "continuing without $*"
	exec 9<&-
}

has_apt()
{
	command -v apt-get >/dev/null
}

update_package_lists()
{
	[ ! -e "$RUN/log/apt-update.log" ] || return 0
	ask_for_sudo
	await_apt apt-update apt-get update -qq || say "continuing with the existing package lists"
}

install_packages()
{
	local fitting packages
	has_apt || die "please install $*"
	ask_for_sudo
	update_package_lists
	fitting=$(fit_to_server "$@")
	mapfile -t packages <<<"$fitting"
	say "installing ${packages[*]}"
	await_apt apt-install bash -c "$(declare -f apt_install); apt_install \"\$@\"" apt_install "${packages[@]}" ||
		die "could not install ${packages[*]}"
}

# Ask for the password now, since sudo cannot ask for it later.
ask_for_sudo()
{
	[ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || sudo -v ||
		die "packages are missing, and only root may install them"
}

# The same packages, but with the headers in the version of the installed server, since a module
# that was compiled for 15.20 does not load in 15.18. If the archive no longer has that version,
# upgrade server and headers together, unless the server is running, which we must not stop.
fit_to_server()
{
	local package major version
	for package in "$@"; do
		major=${package#postgresql-server-dev-}
		version=$(version_of_package "postgresql-$major")
		if [ "$major" = "$package" ] || [ -z "$version" ]; then
			echo "$package"
		elif versions_in_archive "$package" | grep -xF "$version" >/dev/null; then
			echo "$package=$version"
		elif [ -n "$(clusters_at_work "$major")" ]; then
			die "the archive has no headers for the server $version, which is running; please upgrade it:" \
				"apt-get install $package postgresql-$major postgresql-client-$major"
		else
			printf '%s\n' "$package" "postgresql-$major" "postgresql-client-$major"
		fi
	done
}

versions_in_archive()
{
	apt-cache madison "$1" | cut -d '|' -f 2 | tr -d ' '
}

version_of_package()
{
	{ dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$1" 2>/dev/null || true; } | sed -n 's/^installed //p'
}

clusters_at_work()
{
	{ pg_lsclusters -h 2>/dev/null || true; } | awk -v "major=$1" '$1 == major && $4 ~ /^online/'
}

# Run an apt command as root, with its output in a log: await_apt LOG COMMAND ... If another apt
# is running, wait for it. DPkg::Lock::Timeout waits only for the locks of dpkg. The package lists
# and the downloaded packages have other locks, and no option waits for them.
await_apt()
{
	local log=$RUN/log/$1.log end=$((SECONDS + APT_PATIENCE))
	shift
	while ! patiently output_to "$log" as_root env LC_ALL=C "$@"; do
		if ! grep -qE '^(E|Error): (Could not get lock|Unable to (lock|acquire))' "$log"; then
			cat "$log" >&2
			return 1
		fi
		[ $SECONDS -lt $end ] || die "another apt has been running for $APT_PATIENCE seconds"
		[ -e "$log.waits" ] || say "waiting for another apt to end"
		: >"$log.waits"
		patiently sleep 2
	done
}

# This runs as root in its own shell. It ignores signals, so that no package is left half installed.
# A server package normally creates a cluster "main" and starts all existing clusters; prevent both.
# Also prevent the upgrade of a server whose headers come from the same source package.
apt_install()
{
	local conf_dir=/etc/postgresql-common/createcluster.d
	local conf=$conf_dir/pg_stepwise.conf policy=/usr/sbin/policy-rc.d status=0
	trap '' HUP INT TERM
	mkdir -p $conf_dir
	echo 'create_main_cluster = false' >$conf
	if [ -e $policy ]; then
		policy=
	else
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=600 -o APT::Get::Upgrade-By-Source-Package=false "$@" </dev/null || status=$?
	rm -f $conf $policy
	rmdir --ignore-fail-on-non-empty -p $conf_dir
	return $status
}

# Put the programs of PostgreSQL first in the path, and choose the user that runs the server.
use_postgres()
{
	BINDIR=$(pg --bindir)
	[ -n "$BINDIR" ] || die "$PG_CONFIG is no pg_config"
	# shellcheck disable=SC2034	# test/run uses it
	DRIVERS=$(drivers)
	export PATH="$BINDIR:$PATH"
	compare_versions

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

# Warn if the headers have another version than the server.
compare_versions()
{
	local headers server
	headers=$(sed -n 's/^#define PG_VERSION "\([^ "]*\).*/\1/p' "$(pg --includedir-server)/pg_config.h" 2>/dev/null) || true
	server=$(postgres --version | sed 's/^[^0-9]*\([^ ]*\).*/\1/')
	[ -z "$headers" ] || [ "$headers" = "$server" ] || say "note: the headers are of PostgreSQL $headers, the server is $server"
}

# Make the server's user the owner of files that root has made.
own_by_server()
{
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVER_USER" "$@"
}

# --- the build ---------------------------------------------------------------

# Build the extension as "test" (strict, with assertions) or "release", and install it
# into $RUN/install. Objects are kept under build/, in a folder for each PostgreSQL, so a second run
# compiles only what changed. Set BUILT to the folder of the build.
BUILT=
build_extension()
{
	local kind=$1 tree options=(with_llvm=no)
	[ "$kind" = release ] || options+=(STRICT=1)
	tree=$REPO/build/$kind-$(pg --version | sed 's/^[^0-9]*\([0-9.]*\).*/\1/')
	[ -n "$(packaged_version)" ] || tree=$tree-$(pg --bindir | cksum | cut -d ' ' -f 1)
	if ! mkdir -p "$tree" 2>/dev/null || [ ! -w "$tree" ]; then
		tree=$RUN/build
		mkdir "$tree"
	fi
	say "building for $(pg --version)"
	patiently build_and_install "$tree" "${options[@]}" || die "the build failed"
	# shellcheck disable=SC2034	# test/run uses it
	BUILT=$tree
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
		say "this server loads extensions only from its own folders; installing there"
		as_root "$@"
	fi
}

# Make links to the sources, so that the build does not share objects with a build in the source
# folder. Remove objects whose source is gone.
mirror_sources()
{
	local tree=$1 file
	find "$tree" -type l -delete
	ln -s "$REPO"/{Makefile,pg_stepwise.control,sql} "$tree"
	find src \( -name '*.[ch]' -o -name Makefile \) | while read -r file; do
		mkdir -p "$tree/$(dirname "$file")"
		ln -s "$REPO/$file" "$tree/$file"
	done
	find "$tree/src" -name '*.o' | while read -r file; do
		[ -e "${file%.o}.c" ] || rm "$file"
	done
}

# The settings that make a server find the extension in $RUN/install. Up to version 17 this is a
# setting of Debian, since 18 one of PostgreSQL. Print nothing if the server has neither.
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

# Run a command as the server's user, in that user's folder $RUN/work.
as_server()
{
	(cd "$RUN/work" && exec "${AS_SERVER[@]}" "$@")
}

# The same for a client that may run for long.
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
