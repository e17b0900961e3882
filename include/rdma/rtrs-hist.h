/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histograms of latencies. Each CPU increments its own counters, without a lock, and readers sum
 * them up. On 32-bit machines a reader may see a half-written 64-bit counter.
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
 * Lower bounds of the buckets: 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, ... microseconds. The last bucket
 * begins at 3 * 2^24 us (50.3 s) and has no upper bound.
 */
#define RTRS_HIST_BUCKETS	52

/**
 * struct rtrs_hist - latencies of reads and writes, counted by one CPU
 * @sum: sum of all latencies, in nanoseconds: reads, writes
 * @nr: number of latencies in each bucket: reads, writes
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
 * rtrs_hist_start() - compute the lower bound of a bucket
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
 * @write: true for a write, false for a read
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
