# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each call that can fail fails in turn while a module is loaded: modprobe says why, or
# the module works; it can be loaded afterwards.
# Kernel: debug
# Modules: ours

. ../steps/faults.sh

# load_one MODULE
load_one()
{
	local out=

	if out=$(probe ours "$1" 2>&1); then
		got=0
	else
		got=$(sed -n 's/.*: //p' <<<"$out")
	fi
	disarm
	[ ! -e "/sys/module/$1" ] || rmmod "$1"
	case $hit in
	'')				[ "$got" = 0 ] ;;
	# Without listening for GIDs it goes on.
	*\ rtrs_srv_listen:*)		[[ $got == 0 || $got == "Cannot allocate memory" ]] ;;
	*)				[ "$got" = "Cannot allocate memory" ] ;;
	esac
}

rdma_up
for m in rtrs_core rtrs_client rnbd_client rtrs_server rnbd_server; do
	# What it stands on is there already.
	probe ours "$m"
	rmmod "$m"
	fail_each "$m:*" 10 load_one "$m"
	probe ours "$m"
done
rmmod rnbd_server
# It is for rnbd-server that rtrs-server listens.
fail_each "rtrs_server:*" 10 load_one rnbd_server
points
