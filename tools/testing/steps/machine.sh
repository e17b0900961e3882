# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For tests of live migration: a QEMU machine within a guest that writes a counter to its disk

qmp_socket=/tmp/machine.qmp

# boot_sector FILE: makes the program of the machine
boot_sector()
{
	as --32 -o /tmp/counter.o "$RIG_DIR/steps/counter.S"
	ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o "$1" /tmp/counter.o
	equal "size of the boot sector" "$(stat -c %s "$1")" 512
}

# machine_here DISK [QEMU OPTION...]: starts the machine. QEMU does not lock the disk, which the
# other host may have open as well.
machine_here()
{
	rm -f "$qmp_socket"
	qemu-system-x86_64 -accel tcg -m 4 -nodefaults -no-user-config -display none -vga none \
		-drive "if=none,id=disk,file=$1,format=raw,cache=none,file.locking=off,werror=stop" \
		-device virtio-blk-pci,drive=disk -qmp "unix:$qmp_socket,server=on,wait=off" \
		"${@:2}" >/tmp/machine.out 2>&1 9>&- &
	echo $! >/tmp/machine.pid
	wait_for 60 qmp_here status >/dev/null || fail "QEMU doesn't start: $(cat /tmp/machine.out)"
}

# qmp_here ARGUMENT...: runs steps/qmp.py
qmp_here() { "$RIG_DIR/steps/qmp.py" "$qmp_socket" "$@" 2>>/tmp/machine.out; }

no_machine_here()
{
	qmp_here quit || true
	wait_for 30 ended "$(cat /tmp/machine.pid)" || fail "QEMU doesn't end"
}

machine_is() { [ "$(qmp_here status)" = "$1" ]; }

# counted_here DISK: stops the machine for a moment and prints its counter; false, with a message,
# if the disk has an older number
counted_here()
{
	local failed=0
	qmp_here stop
	"$RIG_DIR/steps/counter.py" "$1" 2>&1 || failed=$?
	qmp_here cont
	return $failed
}
