#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Brings a Debian machine to where guests can be booted: packages, the guests'
# kernel, the in-tree driver as a peer, a module tree for each set of modules.
# Every step is done once and kept in the cache folder; what is there already
# is left alone, so a second run takes a few seconds.
#
#   setup.sh build		packages that a build of the modules needs
#   setup.sh check		and those of `make check`, with the kernel's source
#   setup.sh source		the kernel's whole source, and what it takes to build and run it
#   setup.sh kernel		the guests' kernel to build modules for
#   setup.sh guest [SET...]	all that guests need, with the sets of modules
#				named: ours, intree (default: both), and soft-iWARP
#   setup.sh boot RELEASE	a root folder that systemd boots, of bookworm or trixie
#   setup.sh packages RELEASE	one of a machine on which our packages were never installed
#
# KERNEL=debug is for guests on the debug kernel, which is built first: from
# Debian's source, with the configuration and the patches in debug/, again only
# when one of these or the compiler changes.
#
# KERNEL=6.12 and 7.2 are those of other Debian releases. Each comes with what
# modules for it are built with: the release's compiler and all, in a root folder of
# its own in the cache. This machine's packages and their sources stay as they are.
#
# What guests.py reads afterwards is in the folder that CACHE/current-KERNEL names.

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tools/testing
cache=${RTRS_TESTING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrs-testing}
modules="rtrs-core rtrs-client rtrs-server rnbd-client rnbd-server"
kernel=${KERNEL:-stock}
[ "$kernel" != 6.1 ] || kernel=stock

build_packages="make gcc libc6-dev linux-headers-amd64"
source_packages="linux-source-6.1 xz-utils bzip2"
tool_packages="libjson-c-dev python3 python3-docutils python3-jsonschema"
check_packages="$source_packages $tool_packages sparse perl shellcheck python3-sphinx"
guest_packages="$source_packages qemu-system-x86 busybox-static cpio kmod
	iproute2 rdma-core fio e2fsprogs fdisk util-linux dmsetup mdadm lvm2 xfsprogs
	python3-minimal binutils tmux keyutils librdmacm-dev libibverbs-dev libssl-dev zlib1g-dev ibverbs-providers
	$tool_packages"

debug_packages="$source_packages flex bison bc patch rsync"
# Unlike the debug kernel's, the build of one for x86 takes its objtool.
x86_packages="$source_packages flex bison bc libelf-dev"
# What it takes when it runs with the drivers built in
start_packages="busybox-static iproute2 fio"

# What modules are built with in another release's root folder, and the kernel itself
release_packages=base-files,bash,coreutils,dash,diffutils,findutils,grep,make,mawk,sed
release_packages=$release_packages,perl,linux-headers-amd64,linux-image-amd64,linux-source

# What a guest has that boots by systemd
boot_packages=systemd,systemd-sysv,udev,kmod,iproute2,rdma-core,e2fsprogs,fdisk,libjson-c5,mount
boot_packages=$boot_packages,procps,lvm2,mdadm,btrfs-progs,dkms

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

# step TEXT COMMAND...: says what is being done, with a dot each minute, and how
# long it took. The command's output goes to a log, whose end is shown if it fails.
step()
{
	local text=$1 start=$SECONDS log rc dots
	shift
	mkdir -p "$cache/log"
	log=$cache/log/$kernel-$(tr -c 'a-zA-Z0-9\n' - <<<"$text").log
	printf '  %-58s' "$text"
	while sleep 60 >&- 2>&- && kill -0 $$ 2>/dev/null; do printf .; done &
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
	printf '%4d s\n' $((SECONDS - start))
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
		env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@"
}

packages()
{
	local p
	missing=
	for p in "$@"; do
		[ "$(dpkg-query -Wf '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			missing="$missing $p"
	done
	[ -n "$missing" ] || return 0
	# Not two at a time, for several kernels
	mkdir -p "$cache"
	exec 9>"$cache/.packages"
	flock 9
	command -v apt-get >/dev/null ||
		die "no apt-get here; please install the equivalents of:$missing"
	step "package lists" apt update
	# shellcheck disable=SC2086
	step "packages:$(wc -w <<<"$missing") to install" \
		apt install --no-install-recommends $missing
	exec 9>&-
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

# find_release_kernel RELEASE: the kernel of another Debian release
find_release_kernel()
{
	packages mmdebstrap xz-utils rsync
	release=$cache/root-$kernel
	[ -e "$release/.complete" ] || step "Debian's $1: kernel, headers, compiler" make_release "$1"
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
	local folder=$cache/$1-$2

	[ "$(cat "$folder/.complete" 2>/dev/null)" != "$3" ] || return 0
	step "a root folder of Debian's $2 for $1" "make_$1_root" "$2" "$folder"
	as_root '' tee "$folder/.complete" <<<"$3" >/dev/null
}

find_debug_kernel()
{
	local key

	# shellcheck disable=SC2086
	packages $debug_packages
	key=$( (dpkg-query -Wf '${Version}' linux-source-6.1; gcc -dumpfullversion
		cat "$here"/debug/config "$here"/debug/*.patch) | sha256sum)
	dir=$cache/debug-${key:0:12}
	kdir=$dir/linux
	mkdir -p "$dir"
	[ -e "$dir/.complete" ] || step "the debug kernel (5 to 25 minutes)" build_debug_kernel
	kver=$(<"$kdir/include/config/kernel.release")
}

build_debug_kernel()
{
	local make p

	rm -rf "$kdir" "$dir/image"
	mkdir -p "$kdir"
	tar -C "$kdir" --strip-components=1 -xJf /usr/src/linux-source-6.1.tar.xz
	for p in "$here"/debug/*.patch; do
		patch -d "$kdir" -p1 <"$p"
	done
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
	source=linux-source-6.1
	[ -z "$release" ] || source=linux-source-$kernel
	src=$cache/$source
	[ -e "$src/.complete" ] && [ -e "$src/drivers/infiniband/sw/siw" ] && return
	step "the kernel's source, unpacked in part" unpack_source
}

unpack_source()
{
	rm -rf "$src" "$src.tmp"
	mkdir -p "$src.tmp"
	tar -C "$src.tmp" --strip-components=1 -xJf "$release/usr/src/$source.tar.xz" \
		"$source/scripts" "$source/drivers/infiniband/ulp/rtrs" \
		"$source/drivers/block/rnbd" "$source/drivers/infiniband/sw/siw"
	mv "$src.tmp" "$src"
	touch "$src/.complete"
}

kernel_image()
{
	[ -e "$dir/image/lib/modules/$kver/kernel" ] ||
		step "the guests' kernel, $kver" get_image
	[ -s "$dir/vmlinux" ] || step "its uncompressed form" extract_image
}

get_image()
{
	if [ -n "$release" ]; then
		unpack_image
	else
		download_image
	fi
}

# Not installed: that would build an initramfs for this machine. Its files do.
download_image()
{
	local tmp=$dir/download
	rm -rf "$tmp" "$dir/image"
	mkdir -p "$tmp"
	cd "$tmp"
	apt-get -q download "linux-image-$kver" || {
		apt update
		apt-get -q download "linux-image-$kver"
	}
	dpkg -x ./*.deb "$tmp/image"
	mv "$tmp/image" "$dir/image"
	rm -rf "$tmp"
}

# Modules are packed there. Those of hardware that no guest has stay behind.
unpack_image()
{
	local from=$release/usr/lib/modules/$kver to=$dir/image/lib/modules/$kver

	rm -rf "$dir/image"
	mkdir -p "$to.tmp" "$dir/image/boot"
	cp "$from/vmlinuz" "$dir/image/boot/vmlinuz-$kver" ||
		cp "$release/boot/vmlinuz-$kver" "$dir/image/boot/"
	cp "$from"/modules.* "$to.tmp/"
	rsync -a --exclude=/sound --exclude=/drivers/{gpu,media,net/wireless} \
		"$from/kernel/" "$to.tmp/kernel/"
	find "$to.tmp" -name '*.ko.xz' -print0 | xargs -0 -P "$(nproc)" -n 100 xz -d
	mv "$to.tmp" "$to"
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
	local build=$dir/intree-build

	ls "$build"/drivers/block/rnbd/rnbd-server.ko >/dev/null 2>&1 && return
	step "the in-tree driver, as modules (about a minute)" build_intree
}

build_intree()
{
	local build=$dir/intree-build at=${release:+/build}

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
}

# soft-iWARP, which Debian's kernels don't have
siw_module()
{
	[ -e "$dir/siw-build/siw.ko" ] || step "soft-iWARP, as a module" build_siw
}

build_siw()
{
	local build=$dir/siw-build at=${release:+/build}

	rm -rf "$build"
	cp -r "$src/drivers/infiniband/sw/siw" "$build"
	# shellcheck disable=SC2086
	make_in "$build" -C "$kdir" M="${at:-$build}" $arch CONFIG_RDMA_SIW=m modules
}

# module_tree SET FOLDER: a tree in the shape of /lib/modules, of the kernel's own
# modules and those found in FOLDER.
module_tree()
{
	local set=$1 from=$2 tree=$dir/tree-$1 m ko list='' more=''

	[ "$set-$kernel" != ours-debug ] || more=rtrs-faults
	# It is built in there.
	[ $kernel = debug ] || list=$dir/siw-build/siw.ko
	for m in $modules $more; do
		ko=$(find "$from" -name "$m.ko" | head -n 1)
		[ -n "$ko" ] || die "no $m.ko in $from"
		list="$list $ko"
	done
	# shellcheck disable=SC2086
	if [ -e "$tree/.sum" ] && sha256sum $list | cmp -s - "$tree/.sum"; then
		return
	fi
	# shellcheck disable=SC2086
	step "module tree of '$set'" make_tree $list
}

make_tree()
{
	local to=$tree/lib/modules/$kver

	rm -f "$tree/.sum"
	if [ ! -e "$to/kernel" ]; then
		mkdir -p "$to"
		cp -al "$dir/image/lib/modules/$kver/." "$to/" 2>/dev/null ||
			cp -a "$dir/image/lib/modules/$kver/." "$to/"
	fi
	rm -rf "$to/updates"
	mkdir -p "$to/updates"
	cp "$@" "$to/updates/"
	depmod -b "$tree" "$kver"
	sha256sum "$@" >"$tree/.sum"
}

# Just enough to mount this machine's root folder in the guest.
initramfs()
{
	local first

	first=${sets%% *}
	[ "$dir/initrd" -nt "$here/guest/init" ] && [ -s "$dir/initrd" ] && return
	step "initramfs" make_initramfs "$dir/tree-$first"
}

make_initramfs()
{
	local tree=$1 work=$dir/initramfs a m ko

	rm -rf "$work"
	mkdir -p "$work"/{bin,dev,proc,sys,mod,host,rw,new}
	cp "$(command -v busybox)" "$work/bin/busybox"
	for a in sh mount insmod mkdir switch_root cat ln sleep; do
		ln -s busybox "$work/bin/$a"
	done
	cp "$here/guest/init" "$work/init"
	for m in virtio_pci 9pnet_virtio 9p overlay virtio_console; do
		modprobe -d "$tree" -S "$kver" --show-depends "$m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/list"
	while read -r ko; do
		cp "$ko" "$work/mod/"
		echo "${ko##*/}"
	done <"$work/list" >"$work/mod/order"
	(cd "$work" && find . | cpio -o -H newc --quiet) >"$dir/initrd.tmp"
	mv "$dir/initrd.tmp" "$dir/initrd"
}

# Those for other kernels are built in a copy, for each kernel has objects of its own.
our_modules()
{
	built=$root
	[ $kernel = stock ] || built=$dir/build-ours
	step "modules of this tree" build_ours
}

build_ours()
{
	local at=${release:+/build}

	if [ "$built" != "$root" ]; then
		rsync -rlpc --delete --exclude-from="$root/.gitignore" --exclude=.git \
			"$root/" "$built/" || [ $? = 24 ] # files that a build beside made vanish
	fi
	# Guests have their kernel's own RDMA stack, whatever this machine has.
	# shellcheck disable=SC2086
	make_in "$built" -C "${at:-$built}" KDIR="$kdir" OFED_ROOT= $arch $checked modules
}

# A program of user space; guests run it from here, whatever set of modules they have.
hostile_peer()
{
	step "the hostile peer" make -C "$here/hostile" OUT="$dir/hostile"
}

# How fast the clock counts that guests on QEMU have
counter()
{
	[ "$dir/tsc" -nt "$here/guest/tsc.c" ] || gcc -O2 -Wall -Werror -o "$dir/tsc" "$here/guest/tsc.c"
	tsc_khz=$("$dir/tsc")
}

tool()
{
	step "the tool rnbd" make -C "$root/tools/rnbd" OUT="$dir" "$dir/rnbd"
}

release=''
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
guest)
	shift
	sets=${*:-ours intree}
	arch='' checked=''
	# shellcheck disable=SC2086
	packages $build_packages $guest_packages
	if [ $kernel = debug ]; then
		arch=ARCH=um
		# Our modules with what the debug kernel has for them: unit tests, counters of
		# the lines that ran, checks of undefined behaviour, calls that can be made
		# to fail.
		checked="GCOV_PROFILE=y UBSAN_SANITIZE=y KUNIT=1 FAULTS=y"
	fi
	find_kernel
	# What their compilers warn of is an error.
	[ -z "$release" ] || checked=W=1e
	kernel_source
	if [ $kernel != debug ]; then
		kernel_image
		siw_module
	fi
	for s in $sets; do
		case $s in
		ours)	our_modules; module_tree ours "$built" ;;
		intree)	intree_modules; module_tree intree "$dir/intree-build" ;;
		*)	die "no set of modules '$s'; there are: ours, intree" ;;
		esac
	done
	hostile_peer
	tool
	tsc_khz=
	if [ $kernel != debug ]; then
		counter
		initramfs
	fi
	cat >"$dir/guest.env" <<-ENV
	KERNEL=$kernel
	KVER=$kver
	DIR=$dir
	TSC_KHZ=$tsc_khz
	ENV
	echo "$dir" >"$cache/current-$kernel"
	;;
*)
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
