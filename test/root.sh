# shellcheck shell=bash
#
# New Debian systems for test/fresh. Each is a folder that debootstrap fills from the archive of
# this machine, and that is entered by chroot. Such a folder is called a root.
#
# Each try gets a new root, unpacked from a base that is kept in $ROOTS as a tar file. Remove
# the file to have the base made again. Processes in a root have their own process ids, mounts,
# System V memory, /tmp, /proc and /dev/shm. All mounts are made in a mount namespace, which ends
# with its last process. So no mount is left behind, and removing files cannot follow a mount.
# The network is that of this machine.

# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ROOTS=${ROOTS:-$REPO/build/roots}		# folder of the bases, the logs, and the current root
CLONE=pg_stepwise
TESTER=tester					# the ordinary user

ROOT=
passed=0
failed=0

open_roots()
{
	[ "$(id -u)" -eq 0 ] || die "this needs root, as debootstrap and chroot do"
	command -v debootstrap >/dev/null || die "please install debootstrap"
	[ -n "$(mirror_of_host)" ] || die "apt's sources name no archive of $(suite_of_host)"
	open_run
	mkdir -p "$ROOTS/log"
	ROOTS=$(cd "$ROOTS" && pwd -P)
	bundle_tree
}

at_exit()
{
	trap '' HUP INT PIPE TERM
	end_job
	remove_root
	close_run
}

# When the first process of the namespaces gets SIGTERM, it ends together with all others.
# unshare waits for that. So no process writes to the root while it is removed.
end_job()
{
	[ -z "$JOB" ] || { signal TERM "-$JOB"; wait "$JOB" || true; }
	JOB=
}

# Make a bundle of the committed tree, to be cloned in the root. The repository may belong to
# another user than root.
bundle_tree()
{
	local git=(git -c "safe.directory=$REPO" -C "$REPO")
	[ -z "$("${git[@]}" status --porcelain -uno)" ] || say "changes that are not committed are left out"
	quietly bundle "${git[@]}" bundle create "$RUN/tree.bundle" HEAD || die "there is no committed tree"
}

# --- the package archive of this machine -------------------------------------

suite_of_host()
{
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

# Print the archives of this machine that belong to the distribution, as "URI release".
archives_of_host()
{
	local suite
	suite=$(suite_of_host)
	# shellcheck disable=SC2016	# apt fills these in
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sed -nE "s/^(\S+) ($suite|(old)?stable|testing|unstable)(-updates|-security)? main$/\1 $suite\4/p" | sort -u
}

mirror_of_host()
{
	archives_of_host | sed -n "s/ $(suite_of_host)$//p" | head -n 1
}

# Print the archives of a suite. For suites other than that of this machine, use the main archive.
archives()
{
	if [ "$1" = "$(suite_of_host)" ]; then
		archives_of_host
	else
		echo "$(mirror_of_host) $1"
	fi
}

# --- the base ----------------------------------------------------------------

# Make the base of a suite if it does not exist: git, gcc and make, without recommended packages.
make_base()
{
	local suite=$1 base=$ROOTS/$1.tar
	[ ! -e "$base" ] || return 0
	say "making a base of $suite; this takes a few minutes"
	new_root
	quietly debootstrap in_namespaces bootstrap "$ROOT" "$suite" "$(mirror_of_host)" || die "debootstrap failed"
	tar -C "$ROOT" --numeric-owner -cf "$base.part" .
	mv "$base.part" "$base"
	remove_root
}

# Require signatures. By default debootstrap continues without checking if it has no keys.
bootstrap()
{
	local root=$1 suite=$2 mirror=$3 script=/usr/share/debootstrap/scripts/$2 include=git,gcc,make
	[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid	# younger than debootstrap
	[ "${mirror#https:}" = "$mirror" ] || include=$include,ca-certificates
	eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
	export http_proxy https_proxy
	debootstrap --force-check-gpg --variant=minbase --include="$include" "$suite" "$root" "$mirror" "$script" &&
		forget_packages "$root"
}

# Remove package lists and downloaded packages, as common container images do.
forget_packages()
{
	find "$1/var/lib/apt/lists" "$1/var/cache/apt" -type f -delete
}

# --- the current root --------------------------------------------------------

new_root()
{
	ROOT=$(mktemp -d "$ROOTS/root.XXXXXX")
	chmod 755 "$ROOT"
}

remove_root()
{
	[ -n "$ROOT" ] || return 0
	if grep -qF " $ROOT" /proc/self/mountinfo; then
		say "not removed, as something is mounted there: $ROOT"
	elif [ -n "$KEEP" ]; then
		say "kept: $ROOT"
	else
		rm -rf --one-file-system -- "$ROOT"
	fi
	ROOT=
}

# Unpack a base, and copy the settings for network and archive from this machine, and the certificates
# that it trusts in addition to those of the distribution.
unpack_base()
{
	local suite=$1
	new_root
	tar -C "$ROOT" --numeric-owner -xpf "$ROOTS/$suite.tar"
	cp -L /etc/resolv.conf /etc/hosts "$ROOT/etc"
	mkdir -p "$ROOT/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$ROOT/usr/local/share/ca-certificates" {} + 2>/dev/null || true
	apt-config dump | grep -E '^Acquire::(https?::|ForceIPv[46]|Check-(Valid-Until|Date))' \
		>"$ROOT/etc/apt/apt.conf.d/90host" || true
	# Prevent services from starting, since they would use the network and the ports of this machine.
	printf '#!/bin/sh\nexit 101\n' >"$ROOT/usr/sbin/policy-rc.d"
	chmod +x "$ROOT/usr/sbin/policy-rc.d"
}

use_archives()
{
	sed 's/.*/deb & main/' >"$ROOT/etc/apt/sources.list"
}

# Replace this shell by one that runs a function in new namespaces. Use it with "patiently" or
# "quietly". The first process there must stay, to wait for the servers that a test has killed:
# a dead process that nobody waits for looks alive. When the first process ends, all others are
# killed.
in_namespaces()
{
	exec unshare --mount --pid --ipc --fork --kill-child -- \
		bash -c "$(declare -f "$1" first_process forget_packages); first_process \"\$@\"" bash "$@"
}

first_process()
{
	trap 'exit 143' HUP INT TERM
	"$@" &
	wait $!
}

in_root()
{
	in_namespaces enter_root "$ROOT" "$@"
}

# Mount the file systems of a running system, and run a command with a clean environment.
enter_root()
{
	local root=$1
	shift
	mount -t proc proc "$root/proc" &&
		mount -t tmpfs -o mode=1777 shm "$root/dev/shm" &&
		mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" &&
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

# --- the kinds of systems ----------------------------------------------------

# bare: has only git, gcc and make.
prepare_bare()
{
	archives "$1" | use_archives
}

# server: has server, client and libpq-dev, but nothing to build with. These packages are from the
# initial release, and the archive may have newer ones, as on a system that was set up long ago.
prepare_server()
{
	echo "$(mirror_of_host) $1" | use_archives
	quietly prepare in_root sh -c 'apt-get update -qq && apt-get install -y -qq postgresql postgresql-client libpq-dev' ||
		die "could not prepare the root"
	archives "$1" | use_archives
}

# user: like bare, but the tests run as an ordinary user with sudo, while another apt is running.
prepare_user()
{
	archives "$1" | use_archives
	quietly prepare in_root sh -c "apt-get update -qq && apt-get install -y -qq sudo && useradd -m -s /bin/bash $TESTER &&
		echo '$TESTER ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$TESTER" || die "could not prepare the root"
	forget_packages "$ROOT"
	busy=15
}

# Run a command in the home of the ordinary user if there is one, otherwise of root. If $busy is
# set, another process first holds the lock of the package lists for so many seconds, as apt does.
at_home()
{
	local user=root
	[ ! -e "$ROOT/home/$TESTER" ] || user=$TESTER
	# shellcheck disable=SC2016	# for the shell in the root
	in_root sh -c '
		if [ "$1" -gt 0 ]; then
			perl -MFcntl -e "
				open(my \$lock, q(>), q(/var/lib/apt/lists/lock)) or die;
				my \$whole = pack(q(s s x!8 l! l! i), F_WRLCK, 0, 0, 0, 0);
				fcntl(\$lock, F_SETLK, \$whole) or die;
				sleep \$ARGV[0];" "$1" &
			sleep 1
			kill -0 $! || exit
		fi
		exec runuser -u "$2" -- sh -c "cd && $3"' sh "$busy" "$user" "$1"
}

# --- trying ------------------------------------------------------------------

# try_root SUITE KIND
try_root()
{
	local suite=$1 kind=$2 busy=0
	make_base "$suite"
	unpack_base "$suite"
	"prepare_$kind" "$suite"
	cp "$RUN/tree.bundle" "$ROOT/tmp"
	quietly clone at_home "git clone -q /tmp/tree.bundle $CLONE" || die "could not clone"
	try "$suite" "$kind" demo
	try "$suite" "$kind" 'test'
	remove_root
}

# Run a goal of make and count it: try SUITE KIND GOAL. A compiler warning counts as a failure.
try()
{
	local goal=$3 log=$ROOTS/log/$1-$2-$3.log status=0
	say "$1, $2: make $goal"
	patiently output_to "$log" at_home "cd $CLONE && make $goal TESTS='${TESTS:-}' SUITE_TIMEOUT=${SUITE_TIMEOUT:-}" ||
		status=$?
	if [ $status -eq 0 ] && ! grep -q 'warning:' "$log"; then
		passed=$((passed + 1))
		echo "ok $1, $2: make $goal, $(sed -nE 's/.*building for //p; $s/^[0-9]+ passed.*/&/p' "$log" | tr '\n' ' ')"
	else
		failed=$((failed + 1))
		tail -n 60 "$log"
		echo "FAILED $1, $2: make $goal; the whole log is $log"
	fi
}

sum_up()
{
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}
