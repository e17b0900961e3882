/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rtrs_clt

#if !defined(RTRS_CLT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RTRS_CLT_TRACE_H

#include <linux/tracepoint.h>

#include "clt.h"

TRACE_DEFINE_ENUM(RTRS_CLT_DISCONNECTED);
TRACE_DEFINE_ENUM(RTRS_CLT_CONNECTING);
TRACE_DEFINE_ENUM(RTRS_CLT_CONNECTED);
TRACE_DEFINE_ENUM(RTRS_CLT_ENDING);

#define rtrs_clt_show_state(state) \
	__print_symbolic(state, \
			 { RTRS_CLT_DISCONNECTED, "disconnected" }, \
			 { RTRS_CLT_CONNECTING, "connecting" }, \
			 { RTRS_CLT_CONNECTED, "connected" }, \
			 { RTRS_CLT_ENDING, "ending" })

TRACE_EVENT(rtrs_clt_path_state,
	    TP_PROTO(const char *name, int from, int to, int err),
	    TP_ARGS(name, from, to, err),
	    TP_STRUCT__entry(__array(char, name,
				     RTRS_NAME_LEN + RTRS_PATH_STR_LEN)
			     __field(int, from)
			     __field(int, to)
			     __field(int, err)),
	    TP_fast_assign(strscpy(__entry->name, name, sizeof(__entry->name));
			   __entry->from = from;
			   __entry->to = to;
			   __entry->err = err;),
	    TP_printk("%s: %s -> %s (%d)", __entry->name,
		      rtrs_clt_show_state(__entry->from),
		      rtrs_clt_show_state(__entry->to), __entry->err)
);

#endif /* RTRS_CLT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
