#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Brings a Debian machine to where guests can be booted: packages, the guests'
# kernel, the in-tree driver as a peer, a module tree for each set of modules.
# Every step is done once; a second run takes a few seconds.
#
#   setup.sh build		packages that a build of the modules needs
#   setup.sh check		and those of `make check`, with the kernel's source
#   setup.sh consumers		and Chromium, Prometheus and node_exporter
#   setup.sh source		the kernel's whole source, and what it takes to build and run it
#   setup.sh kernel		the guests' kernel to build modules for
#   setup.sh modules		our modules; what the compiler says is in .build/KERNEL/said
#   setup.sh programs		the tool, the hostile peer, the verifier; .build/programs/said
#   setup.sh guest [SET...]	all that guests need, with the sets of modules named: ours,
#				intree, siw (soft-iWARP), and prometheus (which is no module);
#				default: all
#   setup.sh boot RELEASE	a root folder that systemd boots, of bookworm or trixie
#   setup.sh packages RELEASE	one of a machine on which our packages were never installed
#   setup.sh pictures		packages that draw the pictures of the manuals
#
# KERNEL=debug is for guests on the debug kernel, which is built first: from the source of
# Debian's 7.2, with the configuration and the patches in debug/ and the patches of soft-RoCE,
# again only when one of these or the compiler changes.
#
# KERNEL=6.12 and 7.2 are those of other Debian releases. Each comes with what
# modules for it are built with: the release's compiler and all, in a root folder of
# its own in the cache. This machine's packages and their sources stay as they are.
#
# The cache folder keeps what does not depend on the commit: kernels, sources, the in-tree
# driver. A product gets its name, or its .complete, last, and does not change afterwards. The
# cache also keeps the objects of our modules and programs, which the next build of any clone
# reuses.
#
# .build/KERNEL in this clone keeps what guests run: modules, trees of modules, the tool.
# guests.py reads guest.env there.
#
# Several runs can share the cache and the clone. Each product has a lock, and a run that gets the
# lock checks again whether the product exists. Child processes inherit locks: if a run is killed
# and its compiler goes on, the next run waits for that compiler.

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tools/testing
cache=${RTRS_TESTING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrs-testing}
modules="rtrs-core rtrs-client rtrs-server rnbd-client rnbd-server"
kernel=${KERNEL:-stock}
[ "$kernel" != 6.1 ] || kernel=stock
out=$root/.build/$kernel

build_packages="make gcc libc6-dev linux-headers-amd64 rsync sparse"
source_packages="linux-source-6.1 xz-utils bzip2"
tool_packages="libjson-c-dev python3 python3-docutils python3-jsonschema"
check_packages="$source_packages $tool_packages perl shellcheck python3-sphinx pylint prometheus zsh fish
	librdmacm-dev libibverbs-dev libssl-dev liburing-dev zlib1g-dev"
guest_packages="$source_packages qemu-system-x86 busybox-static cpio kmod
	iproute2 rdma-core fio e2fsprogs fdisk util-linux dmsetup mdadm lvm2 xfsprogs
	python3-minimal binutils tmux keyutils ibverbs-providers
	librdmacm-dev libibverbs-dev libssl-dev liburing-dev zlib1g-dev
	$tool_packages"

picture_packages="graphviz fonts-dejavu-core python3 python3-matplotlib"

debug_packages="flex bison bc patch"
# Unlike the debug kernel's, the build of one for x86 takes its objtool.
x86_packages="$source_packages flex bison bc libelf-dev"
# What it takes when it runs with the drivers built in
start_packages="busybox-static iproute2 fio"

# What modules are built with in another release's root folder, and the kernel itself
release_packages=base-files,bash,coreutils,dash,diffutils,findutils,grep,make,mawk,sed
release_packages=$release_packages,perl,linux-headers-amd64,linux-image-amd64,linux-source

# What a guest has that boots by systemd
boot_packages=systemd,systemd-sysv,udev,kmod,iproute2,rdma-core,e2fsprogs,fdisk,libjson-c5,mount
boot_packages=$boot_packages,procps,lvm2,mdadm,btrfs-progs,dkms,rdmacm-utils
boot_packages=$boot_packages,ibverbs-providers

# What a machine has on which our packages are built and installed; and a further kernel, whose
# headers lie in /var/lib/second to be installed later
user_packages=apt,build-essential,debhelper,dh-dkms,dkms,kmod,libjson-c-dev,linux-headers-amd64
user_packages=$user_packages,lintian,python3-docutils
second_kernel=linux-headers-rt-amd64

die()
{
	echo "setup: $*" >&2
	exit 1
}

# File descriptors of the locked files
locks=()

# lock FILE: waits for other runs that hold the lock, and says so
lock()
{
	local fd name=${1#"$root/"}

	name=${name#"$cache/"}
	mkdir -p "${1%/*}"
	exec {fd}>"$1"
	locks+=("$fd")
	flock -w 1 "$fd" || step "waiting for another run (${name#lock/})" flock "$fd"
}

# unlock: releases the lock that was taken last
unlock()
{
	local fd=${locks[-1]}

	unset 'locks[-1]'
	exec {fd}>&-
}

# once NAME THERE TEXT COMMAND...: a step that makes a product of the cache, unless the shell
# condition THERE holds, which means that the product exists. NAME names its lock.
once()
{
	local name=$1 there=$2

	shift 2
	! eval "$there" || return 0
	lock "$cache/lock/$name"
	eval "$there" || step "$@"
	unlock
}

# replace FOLDER: FOLDER.tmp takes its place
replace()
{
	rm -rf "$1.old"
	[ ! -e "$1" ] || mv "$1" "$1.old"
	mv "$1.tmp" "$1"
	rm -rf "$1.old"
}

# took TEXT MICROSECONDS: appends a line of JSON to the file that SETUP_TIMES names
took()
{
	[ -n "${SETUP_TIMES:-}" ] || return 0
	printf '{"kernel": "%s", "step": "%s", "seconds": %d.%02d}\n' "$kernel" "$1" \
		$(($2 / 1000000)) $(($2 / 10000 % 100)) >>"$SETUP_TIMES"
}

# step TEXT COMMAND...: says what is being done, with a dot each minute, and how
# long it took. The command's output goes to a log, whose end is shown if it fails.
step()
{
	local text=$1 start=${EPOCHREALTIME/[.,]/} log rc dots
	shift
	mkdir -p "$root/.build/log"
	log=$root/.build/log/$kernel-$(tr -c 'a-zA-Z0-9\n' - <<<"$text").log
	printf '  %-58s' "$text"
	{
		# The dots must not hold locks.
		for fd in "${locks[@]}"; do exec {fd}>&-; done
		while sleep 60 >&- 2>&- && kill -0 $$ 2>/dev/null; do printf .; done
	} &
	dots=$!
	set +e	# and not "if": that would take the inner set -e away
	(set -e; "$@") >"$log" 2>&1 </dev/null
	rc=$?
	kill $dots
	wait $dots 2>/dev/null
	set -e
	if [ $rc != 0 ]; then
		printf 'failed\n'
		tail -n 20 "$log" >&2
		die "$text failed; the whole log is $log"
	fi
	start=$((${EPOCHREALTIME/[.,]/} - start))
	printf '%4d s\n' $(((start + 500000) / 1000000))
	took "$text" $start
}

# as_root WHY COMMAND...
as_root()
{
	local why=$1
	shift
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "$why"
	fi
}

apt()
{
	as_root "needs packages; as root, run: apt-get install --no-install-recommends $missing" \
		env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
		-o DPkg::Lock::Timeout=600 "$@"
}

# missing_packages PACKAGE...: prints those that are not installed
missing_packages()
{
	local p

	for p in "$@"; do
		[ "$(dpkg-query -Wf '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			printf ' %s' "$p"
	done
}

packages()
{
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	lock "$cache/.packages"
	missing=$(missing_packages "$@")
	[ -z "$missing" ] || install_packages
	unlock
}

install_packages()
{
	command -v apt-get >/dev/null ||
		die "no apt-get here; please install the equivalents of:$missing"
	step "package lists" apt update
	# shellcheck disable=SC2086
	step "packages:$(wc -w <<<"$missing") to install" \
		apt install --no-install-recommends $missing
}

# The build tree the modules are built against; the top Makefile picks it.
find_kernel()
{
	case $kernel in
	stock)	;;
	debug)	find_debug_kernel; return ;;
	6.12)	find_release_kernel trixie; return ;;
	7.2)	find_release_kernel unstable; return ;;
	*)	die "no kernel '$kernel'; there are: 6.1 (stock), 6.12, 7.2, debug" ;;
	esac
	kdir=${KDIR:-$(make -s --no-print-directory -C "$root" print-kdir)}
	[ -e "$kdir/Makefile" ] || die "no kernel build tree at '$kdir'; give one with KDIR="
	kver=$(sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' \
		"$kdir/include/generated/utsrelease.h")
	dir=$cache/$kver
	mkdir -p "$dir"
}

# release_root RELEASE KERNEL: the root folder of another Debian release
release_root()
{
	packages mmdebstrap xz-utils rsync
	release=$cache/root-$2
	once "root-$2" '[ -e "$release/.complete" ]' \
		"Debian's $1: kernel, headers, compiler" make_release "$1"
}

# find_release_kernel RELEASE: the kernel of another Debian release
find_release_kernel()
{
	release_root "$1" "$kernel"
	kver=$(ls "$release/usr/lib/modules")
	[[ $kver = "$kernel".* ]] || die "$1 has $kver now, and not $kernel; rm -r $release"
	kdir=/usr/lib/modules/$kver/build
	dir=$cache/$kver
	mkdir -p "$dir"
}

# bootstrap RELEASE FOLDER VARIANT PACKAGES [OPTION...]: a root folder of another Debian release,
# from where this machine gets its own packages; what is in unstable there may be old.
bootstrap()
{
	local mirror

	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' \
		'Label: Debian' 'Component: main' | head -n 1)
	[ -n "$mirror" ] || { echo "no source of Debian packages on this machine"; return 1; }
	as_root "needs root, for a root folder of $1" rm -rf --one-file-system "$2"
	as_root '' mmdebstrap --mode=root --variant="$3" --include="$4" "${@:5}" \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--aptopt='APT::Install-Recommends "false"' "$1" "$2" "$mirror"
}

# Unpacked only, not installed: that takes seconds, and it all works as it is.
make_release()
{
	bootstrap "$1" "$release" extract "$release_packages"
	as_root '' mkdir -p "$release/build"
	as_root '' ln -sf mawk "$release/usr/bin/awk"
	as_root '' touch "$release/.complete"
}

# A release that systemd boots, as the root folder of guests
make_boot_root()
{
	bootstrap "$1" "$2" minbase "$boot_packages"
}

# A machine for our packages
make_packages_root()
{
	local get

	# shellcheck disable=SC2016
	get='cd "$1/var/cache/apt/archives" && rm -f *.deb && export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG &&
		apt-get -q -y install --download-only '$second_kernel' && mkdir "$1/var/lib/second" &&
		mv *.deb "$1/var/lib/second/"'
	bootstrap "$1" "$2" minbase "$user_packages" --customize-hook="$get"
}

# root_folder KIND RELEASE CONTENT: made by make_KIND_root, if there is none that has the content
root_folder()
{
	local folder=$cache/$1-$2 content=$3

	once "$1-$2" '[ "$(cat "$folder/.complete" 2>/dev/null)" = "$content" ]' \
		"a root folder of Debian's $2 for $1" make_root "$1" "$2"
}

make_root()
{
	"make_$1_root" "$2" "$folder.tmp"
	as_root '' tee "$folder.tmp/.complete" <<<"$content" >/dev/null
	as_root '' rm -rf --one-file-system "$folder"
	as_root '' mv "$folder.tmp" "$folder"
}

find_debug_kernel()
{
	local key tar

	# shellcheck disable=SC2086
	packages $debug_packages
	release_root unstable 7.2
	tar=$release/usr/src/linux-source-7.2.tar.xz
	[ -e "$tar" ] || die "unstable has another kernel now, and not 7.2; rm -r $release"
	# Only the source is from that release. This machine's compiler builds it.
	release=''
	key=$( (stat -Lc %s "$tar"; gcc -dumpfullversion; debug_patches
		cat "$here"/debug/config) | sha256sum)
	dir=$cache/debug-${key:0:12}
	kdir=$dir/linux
	mkdir -p "$dir"
	once "${dir##*/}" '[ -e "$dir/.complete" ]' \
		"the debug kernel (5 to 25 minutes)" build_debug_kernel
	kver=$(<"$kdir/include/config/kernel.release")
}

debug_patches()
{
	cat "$here"/debug/*.patch
	rxe_patches
}

build_debug_kernel()
{
	local make

	rm -rf "$kdir" "$dir/image"
	mkdir -p "$kdir"
	tar -C "$kdir" --strip-components=1 -xJf "$tar"
	debug_patches | patch -d "$kdir" -p1 -F0
	make="make -s -C $kdir ARCH=um -j$(nproc)"
	$make tinyconfig
	cat "$here/debug/config" >>"$kdir/.config"
	$make olddefconfig
	# What depends on something else that is off would go without a word.
	grep -E '^(CONFIG|# CONFIG)' "$here/debug/config" | grep -vxFf "$kdir/.config" && return 1
	$make linux modules
	$make INSTALL_MOD_PATH="$dir/image" modules_install
	mv "$kdir/linux" "$dir/linux-uml"
	# What is left is for building modules.
	rm -rf "$kdir"/{Documentation,samples,sound,tools,vmlinux*,.tmp*} "$kdir"/drivers/{gpu,net}
	find "$kdir" \( -name '*.[coSa]' -o -name '*.dts*' -o -name '.*.cmd' \) \
		! -path '*/scripts/*' -type f -delete
	touch "$dir/.complete"
}

kernel_source()
{
	local from=$release

	case $kernel in
	stock)	source=linux-source-6.1 ;;
	debug)	source=linux-source-7.2 from=$cache/root-7.2 ;;
	*)	source=linux-source-$kernel ;;
	esac
	src=$cache/$source
	once "$source" '[ -e "$src/.complete" ] && [ -e "$src/drivers/infiniband/sw/rxe" ]' \
		"the kernel's source, unpacked in part" unpack_source
}

unpack_source()
{
	rm -rf "$src.tmp"
	mkdir -p "$src.tmp"
	tar -C "$src.tmp" --strip-components=1 -xJf "$from/usr/src/$source.tar.xz" \
		"$source/scripts" "$source/drivers/infiniband/ulp/rtrs" \
		"$source/drivers/block/rnbd" "$source/drivers/infiniband/sw/siw" \
		"$source/drivers/infiniband/sw/rxe" "$source/tools/testing/kunit"
	touch "$src.tmp/.complete"
	replace "$src"
}

kernel_image()
{
	once "${dir##*/}-image" '[ -e "$dir/image/lib/modules/$kver/modules.dep.bin" ]' \
		"the guests' kernel, $kver" get_image
	once "${dir##*/}-image" '[ -s "$dir/vmlinux" ]' "its uncompressed form" extract_image
}

get_image()
{
	rm -rf "$dir/image.tmp"
	if [ -n "$release" ]; then
		unpack_image
	else
		download_image
	fi
	depmod -b "$dir/image.tmp" "$kver"
	replace "$dir/image"
}

# Not installed: that would build an initramfs for this machine. Its files do.
download_image() { unpack_packages "$dir/image.tmp" "linux-image-$kver"; }

# unpack_packages FOLDER PACKAGE...: the files of packages, without installing them
unpack_packages()
{
	local to=$1 deb

	shift
	rm -rf "$to" "$to.download"
	mkdir -p "$to.download"
	cd "$to.download"
	lock "$cache/.packages"
	apt-get -q download "$@" || {
		apt update
		apt-get -q download "$@"
	}
	unlock
	for deb in *.deb; do
		dpkg -x "$deb" "$to"
	done
	rm -rf "$to.download"
}

# Not installed: on a machine that runs systemd, that would start them.
prometheus()
{
	once prometheus '[ -e "$cache/prometheus" ]' "Prometheus and node_exporter" get_prometheus
	ln -sfn "$cache/prometheus" "$out/prometheus"
}

get_prometheus()
{
	unpack_packages "$cache/prometheus.tmp" prometheus prometheus-node-exporter
	replace "$cache/prometheus"
}

# Modules are packed there. Those of hardware that no guest has stay behind.
unpack_image()
{
	local from=$release/usr/lib/modules/$kver to=$dir/image.tmp/lib/modules/$kver

	mkdir -p "$to" "$dir/image.tmp/boot"
	cp "$from/vmlinuz" "$dir/image.tmp/boot/vmlinuz-$kver" ||
		cp "$release/boot/vmlinuz-$kver" "$dir/image.tmp/boot/"
	cp "$from"/modules.* "$to/"
	rsync -a --exclude=/sound --exclude=/drivers/{gpu,media,net/wireless} \
		"$from/kernel/" "$to/kernel/"
	find "$to" -name '*.ko.xz' -print0 | xargs -0 -P "$(nproc)" -n 100 xz -d
}

extract_image()
{
	bash "$src/scripts/extract-vmlinux" "$dir/image/boot/vmlinuz-$kver" >"$dir/vmlinux.tmp"
	mv "$dir/vmlinux.tmp" "$dir/vmlinux"
}

# make_in FOLDER ARG...: make what is built there, with what the kernel wants: that of
# another release in that release's root folder, where FOLDER is called /build.
make_in()
{
	local folder=$1
	shift
	if [ -z "$release" ]; then
		make -j"$(nproc)" "$@"
		return
	fi
	# shellcheck disable=SC2016
	as_root '' unshare --mount sh -ec '
		mount --bind "$2" "$1/build"
		mount -t proc proc "$1/proc"
		root=$1
		shift 2
		exec chroot "$root" "$@"' sh "$release" "$folder" make -j"$(nproc)" "$@"
}

# The in-tree driver of the same name, as modules: a peer for interoperation
# and a measure of speed.
intree_modules()
{
	once "${dir##*/}-intree" '[ -e "$dir/intree-build/drivers/block/rnbd/rnbd-server.ko" ]' \
		"the in-tree driver, as modules" build_intree
}

build_intree()
{
	local build=$dir/intree-build.tmp at=${release:+/build}

	rm -rf "$build"
	mkdir -p "$build/drivers/infiniband/ulp" "$build/drivers/block"
	cp -r "$src/drivers/infiniband/ulp/rtrs" "$build/drivers/infiniband/ulp/"
	cp -r "$src/drivers/block/rnbd" "$build/drivers/block/"
	cat >"$build/Kbuild" <<-'KBUILD'
	obj-m += drivers/infiniband/ulp/rtrs/ drivers/block/rnbd/
	subdir-ccflags-y += -I$(src)/drivers/infiniband/ulp/rtrs
	KBUILD
	# shellcheck disable=SC2086
	make_in "$build" -C "$kdir" M="${at:-$build}" $arch \
		CONFIG_INFINIBAND_RTRS=m CONFIG_INFINIBAND_RTRS_CLIENT=m \
		CONFIG_INFINIBAND_RTRS_SERVER=m CONFIG_BLK_DEV_RNBD=y \
		CONFIG_BLK_DEV_RNBD_CLIENT=m CONFIG_BLK_DEV_RNBD_SERVER=m \
		modules
	replace "$dir/intree-build"
}

# rxe_patches: prints what mends faults of rxe in this kernel
rxe_patches()
{
	case $kernel in
	6.12 | 7.2 | debug) cat "$here"/rxe/{all,6.12}/*.patch ;;
	*) cat "$here"/rxe/{all,6.1}/*.patch ;;
	esac
}

# soft-RoCE with these patches, as a module in place of the kernel's own
rxe_module()
{
	local key

	key=$(rxe_patches | sha256sum)
	rxe=$dir/rxe-${key:0:12}
	once "${dir##*/}-rxe" '[ -e "$rxe/rdma_rxe.ko" ]' "soft-RoCE, patched" \
		build_device rxe "$rxe"
}

# build_device DRIVER FOLDER: builds the driver of a software device from the kernel's source
build_device()
{
	local build=$2.tmp at=${release:+/build}

	rm -rf "$build"
	cp -r "$src/drivers/infiniband/sw/$1" "$build"
	[ "$1" != rxe ] || rxe_patches | patch -d "$build" -p5 -F0
	# shellcheck disable=SC2086
	make_in "$build" -C "$kdir" M="${at:-$build}" $arch "CONFIG_RDMA_${1^^}=m" modules
	replace "$2"
}

# soft-iWARP, which Debian's kernels don't have
siw_module()
{
	once "${dir##*/}-siw" '[ -e "$dir/siw-build/siw.ko" ]' "soft-iWARP, as a module" \
		build_device siw "$dir/siw-build"
}

# module_tree SET MODULE...: a tree in the shape of /lib/modules, of the kernel's own modules
# and these. A tree of the same modules stays as it is, as guests may be using it.
module_tree()
{
	local set=$1 tree=$out/tree-$1

	shift
	lock "$out/.lock"
	[ $kernel = debug ] || set -- "$@" "$rxe/rdma_rxe.ko"
	tree_of "$@" | cmp -s - "$tree/.of" || step "module tree of '$set'" make_tree "$@"
	unlock
}

# tree_of MODULE...: prints what a tree is made of
tree_of()
{
	echo "$dir"
	sha256sum "$@"
}

make_tree()
{
	local to=$tree.tmp/lib/modules/$kver

	rm -rf "$tree.tmp"
	mkdir -p "$to"
	cp -al "$dir/image/lib/modules/$kver/." "$to/" 2>/dev/null ||
		cp -a "$dir/image/lib/modules/$kver/." "$to/"
	mkdir "$to/updates"
	cp "$@" "$to/updates/"
	depmod -b "$tree.tmp" "$kver"
	tree_of "$@" >"$tree.tmp/.of"
	replace "$tree"
}

# Just enough to mount this machine's root folder in the guest.
initramfs()
{
	local key

	key=$( (cat "$here/guest/init" "$(command -v busybox)"; declare -f make_initramfs) | sha256sum)
	initrd=$dir/initrd-${key:0:12}
	once "${dir##*/}-initramfs" '[ -e "$initrd" ]' "initramfs" make_initramfs
}

make_initramfs()
{
	local work=$dir/initramfs a m ko

	rm -rf "$work"
	mkdir -p "$work"/{bin,dev,proc,sys,mod,host,rw,new}
	cp "$(command -v busybox)" "$work/bin/busybox"
	for a in sh mount insmod mkdir switch_root cat ln sleep; do
		ln -s busybox "$work/bin/$a"
	done
	cp "$here/guest/init" "$work/init"
	for m in virtio_pci 9pnet_virtio 9p overlay virtio_console; do
		modprobe -d "$dir/image" -S "$kver" --show-depends "$m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/list"
	while read -r ko; do
		cp "$ko" "$work/mod/"
		echo "${ko##*/}"
	done <"$work/list" >"$work/mod/order"
	(cd "$work" && find . | cpio -o -H newc --quiet) >"$initrd.tmp"
	mv "$initrd.tmp" "$initrd"
	rm -rf "$work"
}

# objects FOLDER STAMP SOURCE...: copies this tree's sources to a folder of objects in the cache.
# Objects of a build that was killed are deleted, as they may be incomplete, or not checked by
# sparse. All objects are deleted if STAMP has changed, i.e. the options or the compiler.
objects()
{
	local folder=$1 stamp=$2

	shift 2
	if [ "$(cat "$folder.stamp" 2>/dev/null)" != "$stamp" ]; then
		rm -rf "$folder" "$folder.begun"
		echo "$stamp" >"$folder.stamp"
	fi
	forget "$folder"
	mkdir -p "$folder"
	(cd "$root" && rsync -rlpcR --delete --exclude-from=.gitignore "$@" "$folder/") ||
		[ $? = 24 ] # files that a build beside made vanish
}

# forget FOLDER: deletes what a build has made that did not end
forget()
{
	[ ! -e "$1.begun" ] || find "$1" -newer "$1.begun" -type f -delete
	rm -f "$1.begun"
}

# compile FOLDER COMMAND...: runs a command that builds in the folder of objects. Its output goes
# to $said as well. With $strict, any output is a failure, and what the command has made is
# deleted, so that the next build prints the same.
compile()
{
	local folder=$1 rc=0 text

	shift
	touch "$folder.begun"
	"$@" >"$said.tmp" 2>&1 || rc=$?
	# Debian's headers package has no vmlinux to make BTF from.
	text=$(grep -v 'Skipping BTF generation' "$said.tmp") || true
	rm "$said.tmp"
	if [ -n "$strict" ] && [ -n "$text" ]; then
		rc=1
		forget "$folder"
	fi
	rm -f "$folder.begun"
	printf '%s' "${text:+$text$'\n'}" | tee "$said"
	return $rc
}

# sources FOLDER STAMP FILE...: prints a checksum of the sources in FOLDER
sources()
{
	local folder=$1 stamp=$2

	shift 2
	(cd "$folder" && echo "$stamp" && find "$@" -type f \( -name '*.[ch]' -o -name '*.mk' \
		-o -name '*.rst' -o -name Makefile -o -name Kbuild \) ! -name '*.mod.c' -print0 |
		sort -z | xargs -0 sha256sum) | sha256sum
}

# Our modules, in $out/modules. All clones share the objects, which are in the cache.
our_modules()
{
	local build=$dir/objects said=$out/said strict='' options=() stamp m
	local from=(Kbuild Makefile include drivers tools/testing/debug/faults)

	case $kernel in
	stock)	# Every warning of the compiler, kernel-doc and sparse is an error. `make check` relies
		# on this build.
		strict=y
		options=(-s W=1e C=1 CF=-Wsparse-error)
		# The compiler's minor version may differ from the kernel's.
		export KDOC_WERROR=1 DEBIAN_KERNEL_NO_CC_VERSION_CHECK=1
		;;
	debug)	# What this kernel has for them: unit tests, counters of the lines that ran, checks
		# of undefined behaviour, calls that can be made to fail.
		options=(GCOV_PROFILE=y UBSAN_SANITIZE=y KUNIT=1 FAULTS=y)
		;;
	*)	# What their compilers warn of is an error.
		options=(W=1e)
		;;
	esac
	stamp=$(echo "$build" "${options[@]}"
		if [ -n "$release" ]; then
			stat -c %Y "$release/.complete"
		else
			gcc -v 2>&1
			sparse --version
			cat "$kdir"/Module.symvers "$kdir"/include/generated/*.h | sha256sum
		fi)
	ours=()
	for m in $modules; do ours+=("$out/modules/$m.ko"); done
	[ $kernel != debug ] || ours+=("$out/modules/rtrs-faults.ko")
	lock "$out/.lock"
	rm -f "$said"
	if [ "$(sources "$root" "$stamp" "${from[@]}")" != "$(cat "$out/.modules" 2>/dev/null)" ]; then
		lock "$cache/lock/${dir##*/}-objects"
		step "modules of this tree" build_ours
		unlock
	fi
	unlock
}

build_ours()
{
	local at=${release:+/build} m ko made=()

	objects "$build" "$stamp" "${from[@]}"
	# A module that the Makefile no longer builds must not stay.
	find "$build" -name '*.ko' -delete
	# Guests have their kernel's own RDMA stack, whatever this machine has.
	# shellcheck disable=SC2086
	compile "$build" make_in "$build" -C "${at:-$build}" KDIR="$kdir" OFED_ROOT= $arch \
		"${options[@]}" modules
	rm -f "$out/.modules"
	for m in "${ours[@]##*/}"; do
		ko=$(find "$build" -name "$m")
		[ -n "$ko" ] || { echo "no $m in $build"; return 1; }
		made+=("$ko")
	done
	mkdir -p "$out/modules"
	rsync -pc "${made[@]}" "$out/modules/"
	if [ $kernel = debug ]; then
		rsync -rpcm --include='*/' --include='*.gcno' --exclude='*' "$build/" "$out/gcno/"
	fi
	sources "$build" "$stamp" "${from[@]}" >"$out/.modules"
}

# The tool, the hostile peer and the verifier, which do not depend on the kernel. All clones share
# the objects, which are in the cache.
programs()
{
	local build=$cache/programs to=$root/.build/programs strict=y stamp
	local said=$to/said from=(tools/rnbd tools/testing/hostile tools/testing/steps/verifier.c)

	stamp=$(echo "$build"; gcc -v 2>&1; rst2man --version)
	lock "$to/.lock"
	rm -f "$said"
	if [ "$(sources "$root" "$stamp" "${from[@]}")" != "$(cat "$to/.of" 2>/dev/null)" ]; then
		lock "$cache/lock/programs"
		step "the tool rnbd, the hostile peer, the verifier" build_programs
		unlock
	fi
	unlock
}

build_programs()
{
	objects "$build" "$stamp" "${from[@]}"
	compile "$build" make_programs
	rm -f "$to/.of"
	rsync -pc "$build"/tool/rnbd{,.8,-volumes.5} "$build"/{hostile,verifier} "$to/"
	sources "$build" "$stamp" "${from[@]}" >"$to/.of"
}

make_programs()
{
	make -s -j"$(nproc)" -C "$build/tools/rnbd" OUT="$build/tool" CFLAGS="-O2 -g -Werror" &&
		CFLAGS="-O2 -g -Werror" make -s -C "$build/tools/testing/hostile" OUT="$build/hostile" &&
		gcc -O2 -g -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Wno-unused-parameter \
			-Wno-missing-field-initializers -Werror -o "$build/verifier" \
			"$build/tools/testing/steps/verifier.c" -luring
}

# How fast the clock counts that guests on QEMU have
counter()
{
	lock "$out/.lock"
	[ "$out/tsc" -nt "$here/guest/tsc.c" ] || {
		gcc -O2 -Wall -Werror -o "$out/tsc.tmp" "$here/guest/tsc.c"
		mv "$out/tsc.tmp" "$out/tsc"
	}
	tsc_khz=$("$out/tsc")
	unlock
}

# What guests.py reads
guest_env()
{
	lock "$out/.lock"
	rsync -pc "$root"/.build/programs/{rnbd,hostile,verifier} "$out/"
	cat >"$out/guest.env.tmp" <<-ENV
	KERNEL=$kernel
	KVER=$kver
	DIR=$out
	SOURCE=$src
	IMAGE=$1
	INITRD=$2
	TSC_KHZ=$3
	ENV
	mv "$out/guest.env.tmp" "$out/guest.env"
	unlock
}

release='' arch=''
[ $kernel != debug ] || arch=ARCH=um
case ${1:-} in
build)
	# shellcheck disable=SC2086
	packages $build_packages
	;;
check)
	# shellcheck disable=SC2086
	packages $build_packages $check_packages
	find_kernel
	kernel_source
	;;
source)
	# shellcheck disable=SC2086
	packages $build_packages $x86_packages $start_packages
	find_kernel
	;;
kernel)
	# shellcheck disable=SC2086
	packages $build_packages
	find_kernel
	;;
boot)
	packages mmdebstrap e2fsprogs fdisk debhelper dh-dkms
	root_folder boot "$2" "$boot_packages"
	;;
packages)
	packages mmdebstrap
	root_folder packages "$2" "$user_packages $second_kernel"
	;;
pictures)
	# shellcheck disable=SC2086
	packages $picture_packages
	;;
consumers)
	# shellcheck disable=SC2086
	packages $build_packages $tool_packages chromium prometheus prometheus-node-exporter
	;;
modules)
	# shellcheck disable=SC2086
	packages $build_packages
	find_kernel
	our_modules
	;;
programs)
	# shellcheck disable=SC2086
	packages $build_packages $check_packages
	programs
	;;
guest)
	shift
	sets=" ${*:-ours intree siw prometheus} "
	for s in $sets; do
		[[ $s =~ ^(ours|intree|siw|prometheus)$ ]] ||
			die "no set '$s'; there are: ours, intree, siw, prometheus"
	done
	# shellcheck disable=SC2086
	packages $build_packages $guest_packages
	find_kernel
	kernel_source
	if [ $kernel != debug ]; then
		kernel_image
		rxe_module
	fi
	# What the first tests need comes first.
	if [[ $sets = *" ours "* ]]; then
		our_modules
		module_tree ours "${ours[@]}"
	fi
	programs
	if [ $kernel = debug ]; then
		guest_env "$dir/linux-uml" '' ''
	else
		counter
		initramfs
		guest_env "$dir/vmlinux" "$initrd" "$tsc_khz"
	fi
	if [[ $sets = *" intree "* ]]; then
		intree_modules
		module_tree intree "$dir"/intree-build/drivers/{infiniband/ulp/rtrs,block/rnbd}/*.ko
	fi
	# It is built in on the debug kernel.
	if [[ $sets = *" siw "* ]] && [ $kernel != debug ]; then
		siw_module
		module_tree siw "$dir/siw-build/siw.ko"
	fi
	[[ $sets != *" prometheus "* ]] || prometheus
	;;
*)
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
