# SPDX-License-Identifier: GPL-2.0
#
# A machine's boot sector. Counts 1, 2, 3 ... through its disk: n is written to sector
# 1 + n mod 256, all over it, and is done before the next one. The sector is read before, and
# must hold n - 256. If it doesn't, sector 257 gets the number that is there, and n; and the
# machine counts no further. What fails is tried again.
	.code16
	.globl	_start
_start:
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$0x7c00, %sp
	movb	%dl, drive
	cld
	movl	$1, %ebx
next:
	movzbl	%bl, %eax
	incl	%eax
	movl	%eax, sector
	movl	%ebx, %eax
	subl	$256, %eax
	jbe	write			# nothing was written there
	pushl	%eax
	movw	$0x4200, %ax		# read, by packet
	call	disk
	popl	%eax
	movw	$data, %di
	movw	$128, %cx
	repe scasl
	jne	stale
write:
	movw	$data, %di
	movw	$128, %cx
	movl	%ebx, %eax
	rep stosl
	movw	$0x4300, %ax		# write, by packet, without verifying
	call	disk
	incl	%ebx
	jmp	next

stale:
	movl	-4(%di), %eax
	movl	%eax, data
	movl	%ebx, data + 4
	movl	$257, sector
	movw	$0x4300, %ax
	call	disk
halt:
	hlt
	jmp	halt

# What AX says, with the sector
disk:
	pushl	%ebx
again:
	pushw	%ax
	movw	$1, packet + 2		# may have become 0
	movw	$packet, %si
	movb	drive, %dl
	int	$0x13
	popw	%ax
	jc	again
	popl	%ebx
	ret

drive:	.byte	0
	.balign	4
packet:	.byte	16, 0
	.word	1			# sectors
	.word	data, 0			# offset, segment
sector:	.long	0, 0
	.org	510
	.word	0xaa55
	data = 0x8000
