# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Other tests use soft-RoCE with the patches of rxe/. This one uses the kernel's own module: a
# volume is mapped, written, verified and unmapped.
#
# The debug kernel has no unpatched module.
# Modules: ours
# Once: stock 6.12 7.2
# Kernel: stock

# no_rxe: unloads soft-RoCE and the modules that use it
no_rxe()
{
	[ -e /sys/module/rdma_rxe ] || return 0
	unload
	for net in 0 1; do rdma link del rxe$net; done
	rmmod rdma_rxe
}

[[ $(modinfo -n rdma_rxe) = */updates/* ]] || fail "the patched module is not loaded by default"
no_rxe
modprobe -q crc32_generic || :
modinfo -F depends rdma_rxe | tr , '\n' | xargs -n1 modprobe
insmod "/lib/modules/$(uname -r)/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko"

set_up
disk=$(null vol 64)
dev=$(map s1 "$disk")
verify "$dev" "$mixed" --numjobs=2 --size=8m --offset_increment=16m
tear_down "$dev"
no_rxe
