# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# dev_search_path with %SESSNAME%: each session can open the devices in its own directory only.
# Quick: debug

rdma_up
load_server dev_search_path=/dev/exports/%SESSNAME%
load_client
disk=$(null vol 16)
on server "mkdir -p /dev/exports/s1 /dev/exports/s2; ln -sf $disk /dev/exports/s1/mine"
a=$(addr server 0)
for name in mine /mine; do
	dev=$(map s1 "$name")
	unmap "$dev"
	client_idle
done
map_fails ENOENT "sessname=s2 path=$a device_path=mine"
map_fails ENOENT "sessname=s1 path=$a device_path=$disk"
map_fails 'EINVAL|EACCES' "sessname=s2 path=$a device_path=../s1/mine"
client_idle
on server 'rm -r /dev/exports'
tear_down
