// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how fast this machine's time stamp counter counts, in kHz. QEMU without KVM shows it
 * to guests as it is. A guest that finds it out by itself, on a machine that is busy, comes to
 * half of it or less, and its clock then runs twice as fast, and its timeouts with it.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define NSEC_PER_SEC 1000000000ull

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Both clocks at the same time: of many attempts, the one that took the shortest. */
static void look(uint64_t *ns, uint64_t *ticks)
{
	uint64_t before, counter, after, best = UINT64_MAX;
	int i;

	for (i = 0; i < 1000; i++) {
		before = now_ns();
		counter = __rdtsc();
		after = now_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		*ns = before + best / 2;
		*ticks = counter;
	}
}

int main(void)
{
	const struct timespec while_it_counts = { .tv_nsec = NSEC_PER_SEC / 5 };
	uint64_t from_ns, from, to_ns, to;

	look(&from_ns, &from);
	nanosleep(&while_it_counts, NULL);
	look(&to_ns, &to);
	printf("%.0f\n", (to - from) * 1e6 / (to_ns - from_ns));
	return 0;
}
