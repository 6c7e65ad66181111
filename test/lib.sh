# shellcheck shell=bash
#
# The ground on which test/run, test/demo, test/psql and their kin stand: the packages, a
# private build, a private throwaway cluster, and the removal of all of it. A script says
#
#	. "$(dirname "$0")/lib.sh"
#	open_run                    # $RUN, removed again however the script ends
#	need server devel compiler  # installs what is missing
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
APT_PATIENCE=${APT_PATIENCE:-600}		# seconds that another apt may take

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

# A need names what a script uses. Whether it is met is seen from files, not from the package
# database, so that a PostgreSQL from source will do; and from the very files that are used:
# Debian's client package has pg_config, pgxs.mk and pg_regress, and still nothing can be built.
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

# A compiler may be there without the headers of libc: those are only recommended with it.
can_compile()
{
	local compiler
	read -r -a compiler <<<"$(pg --cc)"
	[ ${#compiler[@]} -gt 0 ] || compiler=(gcc)
	command -v make >/dev/null && echo '#include <stdio.h>' | "${compiler[@]}" -E - >/dev/null 2>&1
}

# Where pg_regress, the isolation tester and the Perl modules are.
drivers()
{
	echo "$(pg --pkglibdir)/pgxs/src/test"
}

# Whether a pg_config stands for a PostgreSQL that has both a server and what a build needs.
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

# The packages that are missing for the needs named.
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
	local missing packages
	# Of two runs at once, one installs. A lock of our own, held from the look to the end.
	exec 9</
	patiently flock 9
	choose_postgres
	missing=$(missing_packages "$@")
	if [ -n "$missing" ]; then
		read -r -d '' -a packages <<<"$missing" || true
		install_packages "${packages[@]}" 9<&-	# no service that apt starts may hold the lock
		[ -z "$(missing_packages "$@" 2>/dev/null)" ] || die "installed ${packages[*]}, but files are still missing"
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
	ask_for_sudo
	await_apt apt-update apt-get update -qq || say "going on with the package lists that are there"
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

# Behind this, sudo runs where it cannot ask for a password.
ask_for_sudo()
{
	[ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || sudo -v ||
		die "packages are missing, and only root may install them"
}

# The same packages, but the headers in the version of the server that is installed: a module
# that was compiled for 15.20 does not load in 15.18. Where the archive no longer has that version,
# all are upgraded together, unless the server is at work: that is not for us to end.
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

# Run a command of apt as root, with its output in a log: await_apt LOG COMMAND ... If another
# apt is at work, wait for it. DPkg::Lock::Timeout does so only for the locks of dpkg; the lists
# and the downloaded packages have locks of their own, for which no option waits.
await_apt()
{
	local log=$RUN/log/$1.log end=$((SECONDS + APT_PATIENCE))
	shift
	while ! patiently output_to "$log" as_root env LC_ALL=C "$@"; do
		if ! grep -qE '^(E|Error): (Could not get lock|Unable to (lock|acquire))' "$log"; then
			cat "$log" >&2
			return 1
		fi
		[ $SECONDS -lt $end ] || die "another apt has been at work for $APT_PATIENCE seconds"
		[ -e "$log.waits" ] || say "waiting for another apt to end"
		: >"$log.waits"
		patiently sleep 2
	done
}

# Runs as root, in a shell of its own. Not to be interrupted, as nobody wants half a package.
# A server's package would create a cluster "main", and start all clusters that are there; not for
# our sake. Nor is a server to be upgraded just because its headers are of the same source.
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

# Once PostgreSQL is there: its programs first in the path, and who will run its server.
use_postgres()
{
	BINDIR=$(pg --bindir)
	[ -n "$BINDIR" ] || die "$PG_CONFIG is no pg_config"
	# shellcheck disable=SC2034	# for test/run: pg_regress, the isolation tester, Perl modules
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

# Say so if what is built was not meant for this server.
compare_versions()
{
	local headers server
	headers=$(sed -n 's/^#define PG_VERSION "\([^ "]*\).*/\1/p' "$(pg --includedir-server)/pg_config.h" 2>/dev/null) || true
	server=$(postgres --version | sed 's/^[^0-9]*\([^ ]*\).*/\1/')
	[ -z "$headers" ] || [ "$headers" = "$server" ] || say "note: the headers are of PostgreSQL $headers, the server is $server"
}

# Give what root made to the server's user.
own_by_server()
{
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVER_USER" "$@"
}

# --- the build ---------------------------------------------------------------

# Build the extension as "test" (strict, with assertions) or "release", and install it
# into $RUN/install. Objects are kept under build/, so a second run compiles what changed.
# Afterwards $BUILT is the folder of the build.
BUILT=
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
		say "this server loads extensions only from its own folders: installing there"
		as_root "$@"
	fi
}

# Links to the sources, for a build beside the user's own, whose objects are not taken.
# Objects whose source is gone are removed.
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
