/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rtrs_clt

#if !defined(RTRS_CLT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RTRS_CLT_TRACE_H

#include <linux/tracepoint.h>

#include "clt.h"

TRACE_DEFINE_ENUM(RTRS_CLT_IDLE);
TRACE_DEFINE_ENUM(RTRS_CLT_WAITING);
TRACE_DEFINE_ENUM(RTRS_CLT_CONNECTING);
TRACE_DEFINE_ENUM(RTRS_CLT_CONNECTED);
TRACE_DEFINE_ENUM(RTRS_CLT_RESETTING);
TRACE_DEFINE_ENUM(RTRS_CLT_CLOSING);

#define rtrs_clt_show_state(state) \
	__print_symbolic(state, \
			 { RTRS_CLT_IDLE, "idle" }, \
			 { RTRS_CLT_WAITING, "waiting" }, \
			 { RTRS_CLT_CONNECTING, "connecting" }, \
			 { RTRS_CLT_CONNECTED, "connected" }, \
			 { RTRS_CLT_RESETTING, "resetting" }, \
			 { RTRS_CLT_CLOSING, "closing" })

TRACE_EVENT(rtrs_clt_path_state,
	    TP_PROTO(const char *name, int from, int to, int err),
	    TP_ARGS(name, from, to, err),
	    TP_STRUCT__entry(__array(char, name,
				     RTRS_LABEL_LEN + RTRS_PATH_STR_LEN)
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

TRACE_DEFINE_ENUM(RTRS_CLT_SESS_DOWN);
TRACE_DEFINE_ENUM(RTRS_CLT_SESS_EXPIRED);
TRACE_DEFINE_ENUM(RTRS_CLT_SESS_TRIAL);
TRACE_DEFINE_ENUM(RTRS_CLT_SESS_UP);

#define rtrs_clt_show_sess_state(state) \
	__print_symbolic(state, \
			 { RTRS_CLT_SESS_DOWN, "down" }, \
			 { RTRS_CLT_SESS_EXPIRED, "expired" }, \
			 { RTRS_CLT_SESS_TRIAL, "trial" }, \
			 { RTRS_CLT_SESS_UP, "up" })

TRACE_EVENT(rtrs_clt_sess_state,
	    TP_PROTO(const char *name, int from, int to),
	    TP_ARGS(name, from, to),
	    TP_STRUCT__entry(__array(char, name, RTRS_LABEL_LEN)
			     __field(int, from)
			     __field(int, to)),
	    TP_fast_assign(strscpy(__entry->name, name, sizeof(__entry->name));
			   __entry->from = from;
			   __entry->to = to;),
	    TP_printk("%s: %s -> %s", __entry->name,
		      rtrs_clt_show_sess_state(__entry->from),
		      rtrs_clt_show_sess_state(__entry->to))
);

/* A request is submitted. Later events identify it by its slot. */
TRACE_EVENT(rtrs_clt_submit,
	    TP_PROTO(const char *name, const struct rtrs_clt_io *io),
	    TP_ARGS(name, io),
	    TP_STRUCT__entry(__array(char, name, RTRS_LABEL_LEN)
			     __field(u16, slot)
			     __field(u16, queue)
			     __field(bool, write)
			     __field(u32, len)),
	    TP_fast_assign(strscpy(__entry->name, name, sizeof(__entry->name));
			   __entry->slot = io->slot;
			   __entry->queue = io->queue;
			   __entry->write = io->dir == DMA_TO_DEVICE;
			   __entry->len = io->data_len;),
	    TP_printk("%s: slot %u: %s of %u bytes on queue %u", __entry->name,
		      __entry->slot, __entry->write ? "write" : "read",
		      __entry->len, __entry->queue)
);

/* A step of a request, on a path or in a session */
DECLARE_EVENT_CLASS(rtrs_clt_step,
		    TP_PROTO(const char *name, u32 slot, int err),
		    TP_ARGS(name, slot, err),
		    TP_STRUCT__entry(__array(char, name,
					     RTRS_LABEL_LEN + RTRS_PATH_STR_LEN)
				     __field(u32, slot)
				     __field(int, err)),
		    TP_fast_assign(strscpy(__entry->name, name, sizeof(__entry->name));
				   __entry->slot = slot;
				   __entry->err = err;),
		    TP_printk("%s: slot %u (%d)", __entry->name, __entry->slot,
			      __entry->err)
);

#define DEFINE_RTRS_CLT_STEP(event) \
	DEFINE_EVENT(rtrs_clt_step, event, \
		     TP_PROTO(const char *name, u32 slot, int err), \
		     TP_ARGS(name, slot, err))

/* The request is queued on a connection of a path. */
DEFINE_RTRS_CLT_STEP(rtrs_clt_post);

/* The server has answered the request. */
DEFINE_RTRS_CLT_STEP(rtrs_clt_answer);

/* The request is completed. */
DEFINE_RTRS_CLT_STEP(rtrs_clt_complete);

/* The request's path has died. */
DEFINE_RTRS_CLT_STEP(rtrs_clt_failover);

/* The request waits for a path, or for the upper layer. */
DEFINE_RTRS_CLT_STEP(rtrs_clt_park);

TRACE_EVENT(rtrs_clt_fenced,
	    TP_PROTO(const char *name, u32 id, bool granted),
	    TP_ARGS(name, id, granted),
	    TP_STRUCT__entry(__array(char, name, RTRS_LABEL_LEN)
			     __field(u32, id)
			     __field(bool, granted)),
	    TP_fast_assign(strscpy(__entry->name, name, sizeof(__entry->name));
			   __entry->id = id;
			   __entry->granted = granted;),
	    TP_printk("%s: path %u: %s", __entry->name, __entry->id,
		      __entry->granted ? "the server says so" : "by time")
);

#endif /* RTRS_CLT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
