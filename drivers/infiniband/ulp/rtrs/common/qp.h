/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internal interfaces of rtrs-core. */
#ifndef RTRS_QP_H
#define RTRS_QP_H

#include <kunit/visibility.h>

struct ib_device_attr;
struct ib_event;
struct rtrs_con;
struct rtrs_path;
struct rtrs_qp_params;

/* con.c */
void rtrs_con_qp_event(struct ib_event *event, void *context);
void rtrs_con_init_sq(struct rtrs_con *con, const struct rtrs_qp_params *params);
void rtrs_con_ring(struct rtrs_con *con);

/* recv.c */
void rtrs_con_free_recvs(struct rtrs_con *con);

/* drain.c */
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_path_drain_recv(struct rtrs_path *path);
#endif

/* qp.c */
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_qp_fit(struct rtrs_qp_params *params, const struct ib_device_attr *attrs);
bool rtrs_qp_shrink(struct rtrs_qp_params *params);
u32 rtrs_qp_vector(u32 nr_vectors, u32 nr_io, u32 cid, atomic_t *next);
#endif

#endif /* RTRS_QP_H */
