# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A new kernel, where the vendor's RDMA stack comes by DKMS too: it has to be built first.

src=/usr/src/mlnx-ofed-kernel-24.10
mkdir -p $src
cat >$src/dkms.conf <<'CONF'
PACKAGE_NAME="mlnx-ofed-kernel"
PACKAGE_VERSION="24.10"
AUTOINSTALL="yes"
MAKE[0]="make -C $kernel_source_dir M=$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION/build modules"
BUILT_MODULE_NAME[0]="ib_core"
DEST_MODULE_LOCATION[0]="/updates/dkms"
POST_BUILD="headers $kernelver"
CONF
echo 'obj-m := ib_core.o' >$src/Kbuild
printf '#include <linux/module.h>\nMODULE_LICENSE("GPL");\n' >$src/ib_core.c
cat >$src/headers <<'SCRIPT'
#!/bin/sh
to=/usr/src/ofa_kernel/x86_64/$1
mkdir -p "$to/include"
cp -r "$(dirname "$(readlink -f "/lib/modules/$1/source/Makefile")")/include/rdma" "$to/include/"
sed 's:\tdrivers/:\t/vendor/drivers/:' "/lib/modules/$1/build/Module.symvers" |
	grep /vendor/drivers/infiniband/core >"$to/Module.symvers"
SCRIPT
chmod +x $src/headers

running "$kernel"
must dkms install mlnx-ofed-kernel/24.10 -k "$kernel"
check "apt install" apt install /debs/now/rnbd-dkms_*.deb
check "modules" modules_of "$kernel"
second_kernel
check "the stack's for a kernel that came later" \
	says installed dkms status -m mlnx-ofed-kernel -k "$second"
check "modules of that kernel" modules_of "$second"

# One that can't be built any more, though its headers are there
must dkms remove "rnbd/$version" -k "$second"
must dkms remove mlnx-ofed-kernel/24.10 -k "$second"
echo '#error' >>$src/ib_core.c
check "without the stack's modules there are none" \
	fails_with '^rnbd/.* failed due to missing dependencies: mlnx-ofed-kernel' dkms autoinstall -k "$second"
check "its headers are there" ls "/usr/src/ofa_kernel/x86_64/$second/Module.symvers"
