/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before 6.13, or a stable 6.12: DEFAULT_SYMBOL_NAMESPACE is a token, not a string. */
#ifndef COMPAT_LINUX_EXPORT_H
#define COMPAT_LINUX_EXPORT_H

#include_next <linux/export.h>

#if defined(COMPAT_EXPORT_NS_TOKEN) && defined(DEFAULT_SYMBOL_NAMESPACE)
#undef _EXPORT_SYMBOL
#define _EXPORT_SYMBOL(sym, kind)	__EXPORT_SYMBOL(sym, kind, DEFAULT_SYMBOL_NAMESPACE)
#endif

#endif /* COMPAT_LINUX_EXPORT_H */
