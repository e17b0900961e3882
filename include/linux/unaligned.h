/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before 6.12: <linux/unaligned.h> is <asm/unaligned.h>. */
#ifndef COMPAT_LINUX_UNALIGNED_H
#define COMPAT_LINUX_UNALIGNED_H

#ifdef COMPAT_ASM_UNALIGNED
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif

#endif /* COMPAT_LINUX_UNALIGNED_H */
