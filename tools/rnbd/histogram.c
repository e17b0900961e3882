// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms of durations: parsing of the kernel's format, and statistics.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

/* Parse numbers, "inf" included, up to the end. Returns false if there are none or too many. */
static bool parse_numbers(const char *text, double *values, unsigned int *nr)
{
	char *end;

	for (*nr = 0; *nr < HISTOGRAM_MAX; ++*nr, text = end) {
		values[*nr] = strtod(text, &end);
		if (end == text)
			break;
	}
	while (isspace((unsigned char)*text))
		text++;
	return *nr && !*text;
}

/* Parse hb_latency: number n counts durations below 2^n us; the last number counts the rest. */
bool histogram_parse_heartbeat(struct histogram *h, const char *text)
{
	double counts[HISTOGRAM_MAX];
	unsigned int i, nr;

	memset(h, 0, sizeof(*h));
	if (!parse_numbers(text, counts, &nr))
		return false;
	for (i = 0; i < nr; i++) {
		h->count[i] = counts[i];
		h->bound_us[i] = i + 1 < nr ? ldexp(1, i) : INFINITY;
	}
	h->nr = nr;
	return true;
}

static bool parse_counts(struct histogram *h, const double *bounds, unsigned int nr,
			 const char *text)
{
	double counts[HISTOGRAM_MAX];
	unsigned int i, nr_counts;

	if (!parse_numbers(text, counts, &nr_counts) || nr_counts != nr)
		return false;
	for (i = 0; i < nr; i++) {
		h->bound_us[i] = bounds[i];
		h->count[i] = counts[i];
	}
	h->nr = nr;
	return true;
}

/*
 * Parse io_latency, wait_latency or disk_latency. Their lines, in this order, among others:
 *
 *	usecs 1 2 4 8 ... inf		upper bounds of the buckets, exclusive
 *	read 0 3 17 ...			number of reads in each bucket
 *	write 0 0 4 ...
 *	sum 1234 5678			microseconds of all reads and of all writes; optional
 *
 * Returns false, and clears the histograms, if the text is malformed.
 */
bool histogram_parse_latency(struct latency *latency, char *text)
{
	double bounds[HISTOGRAM_MAX], sums[HISTOGRAM_MAX];
	unsigned int nr = 0, nr_sums = 0;
	char *line, *rest = text;
	bool ok = true;

	memset(latency, 0, sizeof(*latency));
	while (ok && (line = strsep(&rest, "\n"))) {
		if (starts_with(line, "usecs "))
			ok = parse_numbers(line + 6, bounds, &nr);
		else if (starts_with(line, "read "))
			ok = parse_counts(&latency->of[READ], bounds, nr, line + 5);
		else if (starts_with(line, "write "))
			ok = parse_counts(&latency->of[WRITE], bounds, nr, line + 6);
		else if (starts_with(line, "sum "))
			ok = parse_numbers(line + 4, sums, &nr_sums) && nr_sums == NR_DIRECTIONS;
	}
	ok = ok && latency->of[READ].nr && latency->of[WRITE].nr;
	if (!ok) {
		memset(latency, 0, sizeof(*latency));
	} else if (nr_sums) {
		latency->of[READ].has_sum = true;
		latency->of[WRITE].has_sum = true;
		latency->of[READ].sum_us = sums[READ];
		latency->of[WRITE].sum_us = sums[WRITE];
	}
	return ok;
}

/* Add a histogram with the same buckets. An empty @to becomes a copy of @h. */
void histogram_add(struct histogram *to, const struct histogram *h)
{
	unsigned int i;

	if (!to->nr) {
		*to = *h;
		return;
	}
	for (i = 0; i < to->nr && i < h->nr; i++)
		to->count[i] += h->count[i];
	to->has_sum = to->has_sum && h->has_sum;
	to->sum_us += h->sum_us;
}

/* Subtract the earlier histogram @h, unless counters were reset since then. */
void histogram_sub(struct histogram *from, const struct histogram *h)
{
	unsigned int i;

	if (from->nr != h->nr)
		return;
	for (i = 0; i < h->nr; i++)
		if (from->count[i] < h->count[i])
			return;
	for (i = 0; i < h->nr; i++)
		from->count[i] -= h->count[i];
	from->sum_us -= h->sum_us;
}

u64 histogram_total(const struct histogram *h)
{
	u64 total = 0;
	unsigned int i;

	for (i = 0; i < h->nr; i++)
		total += h->count[i];
	return total;
}

static double lower_bound(const struct histogram *h, unsigned int i)
{
	return i ? h->bound_us[i - 1] : 0;
}

/* Get a bucket's upper bound or, if it is infinite, the lower one, so that results stay finite. */
static double upper_bound(const struct histogram *h, unsigned int i)
{
	return isfinite(h->bound_us[i]) ? h->bound_us[i] : lower_bound(h, i);
}

/* Get the mean; NAN if empty. Without a sum, durations count as the middle of their bucket. */
double histogram_mean(const struct histogram *h)
{
	u64 total = histogram_total(h);
	double sum = 0;
	unsigned int i;

	if (!total)
		return NAN;
	if (h->has_sum)
		return h->sum_us / total;
	for (i = 0; i < h->nr; i++)
		sum += h->count[i] * (lower_bound(h, i) + upper_bound(h, i)) / 2;
	return sum / total;
}

/* Get a percentile; NAN if empty. Durations count as spread evenly over their bucket. */
double histogram_percentile(const struct histogram *h, double percent)
{
	double want, low, seen = 0;
	unsigned int i;

	want = histogram_total(h) * percent / 100;
	for (i = 0; want > 0 && i < h->nr; i++) {
		if (h->count[i] && seen + h->count[i] >= want) {
			low = lower_bound(h, i);
			return low + (upper_bound(h, i) - low) * (want - seen) / h->count[i];
		}
		seen += h->count[i];
	}
	return NAN;
}

/* Initialize an empty histogram, with four buckets for each power of two, from 1 us to an hour. */
void histogram_init(struct histogram *h)
{
	unsigned int i;

	memset(h, 0, sizeof(*h));
	h->nr = HISTOGRAM_MAX;
	h->has_sum = true;
	for (i = 0; i < h->nr; i++)
		h->bound_us[i] = i + 1 < h->nr ? exp2(i / 4.0) : INFINITY;
}

void histogram_count(struct histogram *h, double us)
{
	int i = us > 1 ? (int)(log2(us) * 4) + 1 : 0;

	h->count[i < HISTOGRAM_MAX ? i : HISTOGRAM_MAX - 1]++;
	h->sum_us += us;
}
