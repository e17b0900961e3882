# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A vendor's RDMA stack, made up: found and used, or refused with a line that says why.

root=/usr/src/ofa_kernel

# stack KERNEL FOLDER: its headers are the kernel's, and its symbols those of modules of other
# names. Modules that are built with them say so. (Checksums of symbols would not do: Debian's
# kernels have none since 6.18, CONFIG_MODVERSIONS.)
stack()
{
	local common

	common=$(dirname "$(readlink -f "/lib/modules/$1/source/Makefile")")
	mkdir -p "$2/include/linux"
	cp -r "$common/include/rdma" "$2/include/"
	echo '#define MADE_UP_STACK "made up"' >"$2/include/linux/compat-2.6.h"
	sed -i '1i #include <linux/module.h>\nMODULE_INFO(rdma_stack, MADE_UP_STACK);' \
		"$2/include/rdma/rdma_cm.h"
	grep /infiniband/core/ "/lib/modules/$1/build/Module.symvers" |
		sed 's:\tdrivers/infiniband/core/:\t/vendor/made_up_:' >"$2/Module.symvers"
	echo "KVERSION=$1" >"$2/configure.mk.kernel"
}

# taken FOLDER: the one that a build for $kernel takes
taken()
{
	says "^$(plain "$1")\$" make -s -C /tmp/tree KDIR="/lib/modules/$kernel/build" \
		--eval='show: rdma-stack; @echo $(ofed)' rdma-stack show
}

# lacks WHAT: the build is refused, in a single line
lacks()
{
	local said

	said=$(make -s -C /tmp/tree KDIR="/lib/modules/$kernel/build" modules 2>&1) && return 1
	echo "$said"
	grep -E "^Makefile:[0-9]+: \*\*\* A vendor's RDMA stack .* for Linux $(plain "$kernel") need of it:.*$1.*OFED_ROOT= \(empty\) " <<<"$said" &&
		[ "$(grep -cv '^make' <<<"$said")" = 1 ]
}

copy /tmp/tree
second_kernel
running "$kernel"
check "without one the kernel's own is taken" taken ''

# Where it can be, and for which kernel
for where in "$root/$kernel" "$root/x86_64/$kernel" "$root/default"; do
	stack "$kernel" "$where"
	check "found: ${where/$kernel/KERNEL}" taken "$where"
	rm -r "$where"
done
stack "$kernel" "/usr/src/elsewhere/$kernel"
mkdir -p $root
ln -s "/usr/src/elsewhere/$kernel" $root/default
check "found: default, a link" taken "/usr/src/elsewhere/$kernel"
rm -r /usr/src/elsewhere $root/default

check "refused: no headers" lacks include/rdma/ib_verbs.h
stack "$second" "$root/x86_64/$second"
check "refused: headers of another kernel" lacks Module.symvers
ln -s "x86_64/$second" $root/default
check "refused: default is another kernel's" lacks Module.symvers
stack "$kernel" "$root/x86_64/$kernel"
check "found: default is another kernel's, but there is this one's" taken "$root/x86_64/$kernel"
rm "$root/x86_64/$kernel/Module.symvers"
check "refused: no symbols" lacks Module.symvers
grep -vw ib_register_client "/lib/modules/$kernel/build/Module.symvers" >"$root/x86_64/$kernel/Module.symvers"
check "refused: symbols without ib_core's" lacks Module.symvers
rm -r "$root/x86_64/$kernel/include"
check "refused: no headers, but symbols" lacks include/rdma/ib_verbs.h
mv $root /usr/src/away
mkdir -p "/lib/modules/$kernel/extra/mlnx"
touch "/lib/modules/$kernel/extra/mlnx/ib_core.ko.xz"
check "refused: its modules, but no folder" lacks include/rdma/ib_verbs.h
check "OFED_ROOT= is the kernel's own all the same" \
	make -s -C /tmp/tree KDIR="/lib/modules/$kernel/build" OFED_ROOT= rdma-stack
rm -r "/lib/modules/$kernel/extra"
mv /usr/src/away $root

# By DKMS
rm -rf "$root/x86_64/$kernel"
stack "$kernel" "$root/x86_64/$kernel"
check "apt install" apt install /debs/now/rnbd-dkms_*.deb
for k in $kernel $second; do
	check "modules of $k" modules_of "$k"
	check "built with the headers" says '^made up' modinfo -k "$k" -F rdma_stack rtrs-client
	check "built with the symbols" says '\<made_up_ib_core\>' \
		modinfo -k "$k" -F depends rtrs-client
done
rm "$root/x86_64/$kernel/Module.symvers"
check "installation fails without symbols for the running kernel, and says why" \
	fails_with "^rnbd-dkms: .*RDMA stack .* for Linux $(plain "$kernel") need of it" \
	dpkg-reconfigure rnbd-dkms
check "there are no modules then" fails_with '^$' grep installed <(dkms status -m rnbd -k "$kernel")

# shellcheck disable=SC2016
echo 'MAKE[0]="make KDIR=$kernel_source_dir OFED_ROOT= modules"' >/etc/dkms/rnbd.conf
check "OFED_ROOT= in DKMS's configuration" dkms install -m rnbd -v "$version" -k "$kernel"
check "the kernel's own symbols then" says '\<ib_core\>' \
	modinfo -k "$kernel" -F depends rtrs-client
