# SPDX-License-Identifier: GPL-2.0
#
# A machine's boot sector. Counts 1, 2, 3 ... through its disk: n is written to sector
# 1 + n mod 256, all over it, and is done before the next one. What fails is tried again.
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
	movw	$data, %di
	movw	$128, %cx
	movl	%ebx, %eax
	rep stosl
	andl	$255, %eax
	incl	%eax
	movl	%eax, sector
again:
	movw	$packet, %si
	movb	drive, %dl
	movw	$0x4300, %ax		# write, by packet, without verifying
	pushl	%ebx
	int	$0x13
	popl	%ebx
	jc	again
	incl	%ebx
	jmp	next

drive:	.byte	0
	.balign	4
packet:	.byte	16, 0
	.word	1			# sectors
	.word	data, 0			# offset, segment
sector:	.long	0, 0
	.org	510
	.word	0xaa55
	data = 0x8000
