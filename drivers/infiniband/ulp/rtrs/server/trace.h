/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tracepoints of the server. A request is identified by its slot, as on the client. It is received,
 * dispatched to the upper layer, and answered, or dropped if its path is closing.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rtrs_srv

#if !defined(RTRS_SRV_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RTRS_SRV_TRACE_H

#include <linux/tracepoint.h>

#include "srv.h"

TRACE_DEFINE_ENUM(RTRS_SRV_CONNECTING);
TRACE_DEFINE_ENUM(RTRS_SRV_CONNECTED);
TRACE_DEFINE_ENUM(RTRS_SRV_CLOSING);

#define rtrs_srv_show_state(state) \
	__print_symbolic(state, \
			 { RTRS_SRV_CONNECTING, "connecting" }, \
			 { RTRS_SRV_CONNECTED, "connected" }, \
			 { RTRS_SRV_CLOSING, "closing" })

/* A path's name may change while it is copied; it is always NUL-terminated. */
#define rtrs_srv_name_field(srv_path) \
	__dynamic_array(char, name, strlen((srv_path)->path.name) + 1)
#define rtrs_srv_name_assign(srv_path) \
	strscpy(__get_dynamic_array(name), (srv_path)->path.name, \
		__get_dynamic_array_len(name))

TRACE_EVENT(rtrs_srv_path_state,
	    TP_PROTO(const struct rtrs_srv_path *path, int from, int to),
	    TP_ARGS(path, from, to),
	    TP_STRUCT__entry(rtrs_srv_name_field(path)
			     __field(int, from)
			     __field(int, to)),
	    TP_fast_assign(rtrs_srv_name_assign(path);
			   __entry->from = from;
			   __entry->to = to;),
	    TP_printk("%s: %s -> %s", __get_str(name),
		      rtrs_srv_show_state(__entry->from),
		      rtrs_srv_show_state(__entry->to))
);

TRACE_EVENT(rtrs_srv_receive,
	    TP_PROTO(const struct rtrs_srv_con *con, u32 slot, u32 off),
	    TP_ARGS(con, slot, off),
	    TP_STRUCT__entry(rtrs_srv_name_field(con->path)
			     __field(u32, cid)
			     __field(u32, slot)
			     __field(u32, off)),
	    TP_fast_assign(rtrs_srv_name_assign(con->path);
			   __entry->cid = con->con.cid;
			   __entry->slot = slot;
			   __entry->off = off;),
	    TP_printk("%s: slot %u, connection %u, header at %u",
		      __get_str(name), __entry->slot, __entry->cid,
		      __entry->off)
);

DECLARE_EVENT_CLASS(rtrs_srv_io,
		    TP_PROTO(const struct rtrs_srv_io *io, int err),
		    TP_ARGS(io, err),
		    TP_STRUCT__entry(rtrs_srv_name_field(io->con->path)
				     __field(u32, slot)
				     __field(bool, read)
				     __field(u32, len)
				     __field(int, err)),
		    TP_fast_assign(rtrs_srv_name_assign(io->con->path);
				   __entry->slot = io->slot;
				   __entry->read =
					io->op.dir == DMA_FROM_DEVICE;
				   __entry->len = io->op.data_len;
				   __entry->err = err;),
		    TP_printk("%s: slot %u, %s %u bytes (%d)",
			      __get_str(name), __entry->slot,
			      __entry->read ? "read" : "write",
			      __entry->len, __entry->err)
);

#define DEFINE_RTRS_SRV_IO(event) \
	DEFINE_EVENT(rtrs_srv_io, event, \
		     TP_PROTO(const struct rtrs_srv_io *io, int err), \
		     TP_ARGS(io, err))

DEFINE_RTRS_SRV_IO(rtrs_srv_dispatch);
DEFINE_RTRS_SRV_IO(rtrs_srv_answer);
DEFINE_RTRS_SRV_IO(rtrs_srv_wait);
/* The direction and length may belong to an earlier request in the slot. */
DEFINE_RTRS_SRV_IO(rtrs_srv_drop);

DECLARE_EVENT_CLASS(rtrs_srv_fencing,
		    TP_PROTO(const struct rtrs_srv_path *path, u32 id),
		    TP_ARGS(path, id),
		    TP_STRUCT__entry(rtrs_srv_name_field(path)
				     __field(u32, id)),
		    TP_fast_assign(rtrs_srv_name_assign(path);
				   __entry->id = id;),
		    TP_printk("%s: path %u", __get_str(name), __entry->id)
);

DEFINE_EVENT(rtrs_srv_fencing, rtrs_srv_fence,
	     TP_PROTO(const struct rtrs_srv_path *path, u32 id),
	     TP_ARGS(path, id));

DEFINE_EVENT(rtrs_srv_fencing, rtrs_srv_fenced,
	     TP_PROTO(const struct rtrs_srv_path *path, u32 id),
	     TP_ARGS(path, id));

#endif /* RTRS_SRV_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
