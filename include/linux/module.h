/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before 6.13: the argument of MODULE_IMPORT_NS() is a token, not a string. */
#ifndef COMPAT_LINUX_MODULE_H
#define COMPAT_LINUX_MODULE_H

#include_next <linux/module.h>

#ifdef COMPAT_IMPORT_NS_TOKEN
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#endif

#endif /* COMPAT_LINUX_MODULE_H */
