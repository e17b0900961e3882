/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histograms of latencies. Each CPU counts for itself, without a lock; readers add up, and
 * on 32-bit machines may find a number half written.
 */
#ifndef RTRS_HIST_H
#define RTRS_HIST_H

#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Buckets begin at 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, ... microseconds; the last one, at
 * 3 * 2^24, that is 50.3 s, has no end.
 */
#define RTRS_HIST_BUCKETS	52

/**
 * struct rtrs_hist - latencies of reads and of writes, counted by one CPU
 * @sum: sum of all, in nanoseconds: of reads, of writes
 * @nr: number of those in each bucket: reads, writes
 */
struct rtrs_hist {
	u64 sum[2];
	u64 nr[RTRS_HIST_BUCKETS][2];
};

/**
 * rtrs_hist_bucket() - find the bucket of a latency
 * @ns: the latency in nanoseconds
 *
 * Return: index of the bucket.
 */
static inline unsigned int rtrs_hist_bucket(u64 ns)
{
	u64 us = div_u64(ns, NSEC_PER_USEC);
	unsigned int log;

	if (us < 2)
		return us;
	log = fls64(us) - 1;
	return min_t(unsigned int, 2 * log + ((us >> (log - 1)) & 1),
		     RTRS_HIST_BUCKETS - 1);
}

/**
 * rtrs_hist_start() - find the latency at which a bucket begins
 * @bucket: index of the bucket
 *
 * Return: microseconds.
 */
static inline u32 rtrs_hist_start(unsigned int bucket)
{
	return bucket < 2 ? bucket : (2 + (bucket & 1)) << (bucket / 2 - 1);
}

/**
 * rtrs_hist_add() - count a latency
 * @hist: the histogram
 * @write: of a write
 * @ns: the latency in nanoseconds
 *
 * Context: any.
 */
static inline void rtrs_hist_add(struct rtrs_hist __percpu *hist, bool write,
				 u64 ns)
{
	this_cpu_add(hist->sum[write], ns);
	this_cpu_inc(hist->nr[rtrs_hist_bucket(ns)][write]);
}

int rtrs_hist_emit(const struct rtrs_hist __percpu *hist, char *buf);

#endif /* RTRS_HIST_H */
