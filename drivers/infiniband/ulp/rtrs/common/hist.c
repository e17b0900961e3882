// SPDX-License-Identifier: GPL-2.0-or-later
/* Histograms of latencies in sysfs. */
#include <linux/export.h>
#include <linux/sysfs.h>
#include <rdma/rtrs-hist.h>

static u64 rtrs_hist_sum(const struct rtrs_hist __percpu *hist, bool write)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(hist, cpu)->sum[write]);
	return sum;
}

static u64 rtrs_hist_nr(const struct rtrs_hist __percpu *hist, bool write, int bucket)
{
	u64 nr = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu_ptr(hist, cpu)->nr[bucket][write]);
	return nr;
}

/**
 * rtrs_hist_emit() - format a histogram for sysfs
 * @hist: the histogram
 * @buf: page that is filled in
 *
 * Four lines: "usecs" and the latencies in microseconds at which the buckets end; "read" and the
 * number of reads in each bucket; "write" and the number of writes in each bucket; "sum" and the
 * sums of the latencies of reads and of writes in microseconds. The counters may change while they
 * are summed up.
 *
 * Return: number of bytes in @buf.
 */
int rtrs_hist_emit(const struct rtrs_hist __percpu *hist, char *buf)
{
	static const char * const names[] = { "read", "write" };
	int write, i, len;

	len = sysfs_emit(buf, "usecs");
	for (i = 1; i < RTRS_HIST_BUCKETS; i++)
		len += sysfs_emit_at(buf, len, " %u", rtrs_hist_start(i));
	len += sysfs_emit_at(buf, len, " inf\n");
	for (write = 0; write < 2; write++) {
		len += sysfs_emit_at(buf, len, "%s", names[write]);
		for (i = 0; i < RTRS_HIST_BUCKETS; i++)
			len += sysfs_emit_at(buf, len, " %llu",
					     rtrs_hist_nr(hist, write, i));
		len += sysfs_emit_at(buf, len, "\n");
	}
	return len + sysfs_emit_at(buf, len, "sum %llu %llu\n",
				   div_u64(rtrs_hist_sum(hist, false), NSEC_PER_USEC),
				   div_u64(rtrs_hist_sum(hist, true), NSEC_PER_USEC));
}
EXPORT_SYMBOL_GPL(rtrs_hist_emit);
