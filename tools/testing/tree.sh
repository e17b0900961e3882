#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tree.sh [KERNEL...]: lays the drivers into the sources of these kernels (6.1, 6.12, 7.2; all
# by default) by `make tree`, and builds them there with their unit tests, as modules and built
# in. The compiler and Kconfig have nothing to say, laying them again changes nothing, and
# nothing of the in-tree driver is left. 7.2 is then built as User Mode Linux with the drivers
# built in; it starts, their unit tests pass, and it maps a device of its own server.
# Ends in "N passed, N failed".

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${RTRS_TESTING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrs-testing}
build=$root/.build
folders="drivers/infiniband/ulp/rtrs drivers/block/rnbd"
# Files that are changed, and not ours
changed="MAINTAINERS drivers/block/Kconfig drivers/block/Makefile drivers/infiniband/Kconfig
	drivers/infiniband/ulp/Makefile Documentation/block/index.rst
	Documentation/infiniband/index.rst"
passed=0 failed=0

# check TEXT COMMAND...: a result; whatever the command says counts against it
check()
{
	local text=$1 out rc=0
	shift
	out=$(set -e; "$@" 2>&1) || rc=$?
	if [ $rc = 0 ] && [ -z "$out" ]; then
		passed=$((passed + 1))
		echo "ok $((passed + failed)) $text"
	else
		failed=$((failed + 1))
		tail -n 30 <<<"$out" | sed 's/^/# /'
		echo "not ok $((passed + failed)) $text"
	fi
}

# unpack KERNEL: its source, in $tree
unpack()
{
	local tar=/usr/src/linux-source-$1.tar.xz
	[ "$1" = 6.1 ] || tar=$cache/root-$1$tar
	KERNEL=$1 "$here/setup.sh" source
	tree=$build/tree-$1
	rm -rf "$tree"
	mkdir -p "$tree"
	tar -C "$tree" --strip-components=1 -xJf "$tar"
}

lay() { make -s --no-print-directory -C "$root" tree LINUX="$tree" >/dev/null; }

# shellcheck disable=SC2086
laid()
{
	local sums
	lay
	cd "$tree"
	sums=$(sha256sum $changed)
	lay
	[ "$sums" = "$(sha256sum $changed)" ] || echo "it changes when it is laid again"
	[ "$(grep -cE '^(RNBD BLOCK|RTRS TRANSPORT) DRIVERS$' MAINTAINERS)" = 2 ] ||
		echo "MAINTAINERS: not each section once"
	[ "$(sed -n '/^RNBD BLOCK/,/^$/p' MAINTAINERS)" = "$(sed -n '/^RNBD BLOCK/,/^$/p' \
		"$root/MAINTAINERS" | sed '/tools/d; s,Documentation/rnbd,Documentation/block/rnbd,')" ] ||
		echo "MAINTAINERS: not our section"
	find $folders -maxdepth 1 -name '*.c'	# Ours has all of them in folders below.
	grep -rE 'LINUX_VERSION_CODE|KERNEL_VERSION' $folders || true
	grep -rhoE 'Documentation/[^ ;)]*\.rst' $folders | xargs ls >/dev/null
}

# built VALUE: of the drivers' settings, y or m
built()
{
	local value=$1 line
	cd "$tree"
	printf 'CONFIG_%s\n' 64BIT=y MODULES=y SMP=y PCI=y NET=y INET=y IPV6=y BLOCK=y BLK_DEV=y \
		SYSFS=y DEBUG_FS=y FTRACE=y INFINIBAND=y INFINIBAND_ADDR_TRANS=y KUNIT=y WERROR=y \
		INFINIBAND_RTRS_{CLIENT,SERVER}="$value" BLK_DEV_RNBD_{CLIENT,SERVER}="$value" \
		INFINIBAND_RTRS_KUNIT_TEST=y BLK_DEV_RNBD_KUNIT_TEST=y >wanted
	make -s KCONFIG_ALLCONFIG=wanted allnoconfig
	while read -r line; do
		grep -qx "$line" .config || echo "$line is lost"
	done <wanted
	# shellcheck disable=SC2086,SC2046
	make -s -j"$(nproc)" W=1 prepare $(printf '%s/ ' $folders)
	case $value in
	y)	nm drivers/infiniband/ulp/rtrs/built-in.a drivers/block/rnbd/built-in.a |
			grep -cE ' (rtrs_srv|rtrs_clt|rnbd_srv|rnbd_clt)_init$' |
			grep -vx 4 || true ;;
	m)	ls drivers/infiniband/ulp/rtrs/{common,client,server}/rtrs-{core,client,server}.o \
			drivers/block/rnbd/{client,server}/rnbd-{client,server}.o 2>/dev/null |
			wc -l | grep -vx 5 || true ;;
	esac
}

# starts: as the first process says, with nothing in its log that must not be there
# shellcheck disable=SC2086
starts()
{
	local log=$tree.log suites dir

	cd "$tree"
	make -s mrproper
	cat "$here"/rxe/{all,6.12}/*.patch | patch -p1 -s
	make -s ARCH=um KCONFIG_ALLCONFIG="$here/built-in.config" allnoconfig
	grep '^CONFIG' "$here/built-in.config" | grep -vxFf .config |
		sed 's/$/ is lost/' || true
	make -s -j"$(nproc)" ARCH=um linux >"$log" 2>&1 || tail -n 30 "$log"
	dir=$(mktemp -d)
	TMPDIR=$dir timeout -k 5 600 ./linux mem=512M uml_dir="$dir" umid=built-in \
		rootfstype=hostfs rootflags=/ ro init="$here/guest/built-in" con=null \
		con0=fd:0,fd:1 seccomp=on ignore_loglevel random.trust_cpu=on kunit.enable=1 \
		dummy.numdummies=0 null_blk.nr_devices=0 \
		rtrs_server.sess_queue_depth=64 rnbd_server.port_nr=1235 </dev/null >"$log" 2>&1 ||
		echo "it ended with status $?"
	rm -rf "$dir"
	grep -E -f <(grep -v '^#' "$here/trouble") "$log" || true
	grep 'not ok ' "$log" || true
	suites=$(grep -cE '^(\[[^]]*\] )?ok [0-9]+ (- )?(rtrs|rnbd)-' "$log" || true)
	[ "$suites" = "$(grep -rl '^kunit_test_suite' $folders | wc -l)" ] ||
		echo "$suites suites of unit tests have passed, not all"
	grep -qx '# it works.\?' "$log" || tail -n 20 "$log"
}

[ $# -gt 0 ] || set -- 6.1 6.12 7.2
# The sources that they are laid into are this clone's.
mkdir -p "$build"
exec 9>"$build/.tree-lock"
flock 9
for kernel in "$@"; do
	unpack "$kernel" >&2
	check "$kernel: laid into its source" laid
	check "$kernel: built as modules" built m
	check "$kernel: built in" built y
	# What one kernel shows holds for all: the order in which things start.
	[ "$kernel" != 7.2 ] || check "$kernel: built in, it starts" starts
	rm -rf "$tree"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
