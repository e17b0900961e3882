# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The packages' installation builds the modules for all kernels, and a purge leaves nothing.

second_kernel
running "$second"

# A kernel that brings a module of the same name
mkdir /tmp/own
echo 'obj-m := rtrs-core.o' >/tmp/own/Kbuild
cat >/tmp/own/rtrs-core.c <<'C'
#include <linux/module.h>
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("the kernel's own");
C
must make -s -C "/lib/modules/$kernel/build" M=/tmp/own modules
must install -D -t "/lib/modules/$kernel/kernel/drivers" /tmp/own/rtrs-core.ko
must depmod "$kernel"
check "the kernel's own is found first" \
	says "^the kernel's own" modinfo -k "$kernel" -F description rtrs-core

watch_unloading
listing >/tmp/before
check "apt install" apt install /debs/now/*.deb
check "modules of the running kernel" modules_of "$second"
check "modules of another kernel" modules_of "$kernel"
check "modprobe takes them and not the kernel's own" \
	says "$(plain "/lib/modules/$kernel/updates/dkms/rtrs-core.ko")" \
	modprobe -S "$kernel" --show-depends rtrs-core
check "they are signed with DKMS's key" \
	says 'DKMS' modinfo -k "$kernel" -F signer rnbd-client
check "the tool" says "$(plain "$version")" rnbd --version
check "its manual pages, and no others" \
	diff <(cd /tree/tools/rnbd && printf '%s\n' ./*.[58].rst | sed 's/rst$/gz/' | sort) \
	<(cd /usr/share/man && printf '%s\n' man[58]/*rnbd* | sed 's/^man[58]/./' | sort)
check "its completion" \
	ls /usr/share/bash-completion/completions/rnbd \
	/usr/share/zsh/vendor-completions/_rnbd /usr/share/fish/vendor_completions.d/rnbd.fish
check "DKMS's source has no more than a build needs" \
	diff <(printf '%s\n' Kbuild Makefile dkms.conf drivers include) <(ls "/usr/src/rnbd-$version")
check "apt purge" apt purge rnbd-dkms rnbd-utils
listing >/tmp/after
check "nothing is left" diff /tmp/before /tmp/after
check "nothing was unloaded" nothing_unloaded
