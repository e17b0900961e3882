# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each call that can fail fails in turn while a module is loaded: modprobe prints an error, or the
# module works. It can be loaded afterwards.
# Kernel: debug
# Modules: ours

. ../steps/faults.sh

# load_one MODULE: loads a module with a failure
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
	# Without a listener for GIDs the module works.
	*\ rtrs_srv_listen:*)		[[ $got == 0 || $got == "Cannot allocate memory" ]] ;;
	*)				[ "$got" = "Cannot allocate memory" ] ;;
	esac
}

rdma_up
for m in rtrs_core rtrs_client rnbd_client rtrs_server rnbd_server; do
	# The modules that it needs are already loaded.
	probe ours "$m"
	rmmod "$m"
	fail_each "$m:*" 10 load_one "$m"
	probe ours "$m"
done
rmmod rnbd_server
# rtrs-server listens for rnbd-server.
fail_each "rtrs_server:*" 10 load_one rnbd_server
points
