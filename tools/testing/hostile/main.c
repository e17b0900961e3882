// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that speaks RTRS and RNBD, and says everything wrong: as a client to a
 * server, as a server to a client, in directed cases and at random.
 *
 *	hostile list
 *	hostile client ADDR PORT all|CASE...	directed cases against a server
 *
 * Cases are named by patterns. Says "ok CASE" or "not ok CASE: why" for each. The
 * reasons are looked for in this machine's kernel log, so the server has to be
 * here. Device names are given in the environment: HOSTILE_RW, a device that may
 * be written to.
 */
#include <fnmatch.h>

#include "hostile.h"

const char *test_name;
char note[300];
char dev_rw[256];

/*
 * The kernel limits such messages to 10 in 5 seconds from each place, and leaves
 * out the others. Here none may be left out.
 */
#define LOG_BURST	9
#define LOG_MS		5100
static u64 logged_at[LOG_BURST];
static unsigned int nr_logged;

void count_logged(void)
{
	logged_at[nr_logged++ % LOG_BURST] = now_ms();
}

static void pace(void)
{
	u64 oldest = logged_at[nr_logged % LOG_BURST];

	while (oldest && now_ms() < oldest + LOG_MS)
		nap_us(20000);
}

static bool chosen(const char *name, char **patterns, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(patterns[i], "all") || !fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

static int run_tests(const struct test *t, char **patterns, int nr)
{
	int failed = 0;
	u64 start;

	for (; t->name; t++) {
		if (!chosen(t->name, patterns, nr))
			continue;
		pace();
		test_name = t->name;
		note[0] = 0;
		log_mark();
		start = now_ms();
		if (t->run()) {
			failed++;
			printf("not ok %s: %s\n", t->name, why);
		} else {
			printf("ok %s (%llu ms) %s\n", t->name,
			       (unsigned long long)(now_ms() - start), note);
		}
		fflush(stdout);
	}
	return failed;
}

static void list(const struct test *t)
{
	for (; t->name; t++)
		printf("%-24s %s\n", t->name, t->about);
}

static void take_env(const char *name, char *to, size_t len)
{
	const char *val = getenv(name);

	if (val)
		snprintf(to, len, "%s", val);
}

static int usage(void)
{
	fprintf(stderr, "usage: hostile list\n"
		"       hostile client ADDR PORT all|CASE...\n");
	return 2;
}

int main(int argc, char **argv)
{
	int failed = 0;

	take_env("HOSTILE_RW", dev_rw, sizeof(dev_rw));
	rnd_seed(now_ms());
	if (argc == 2 && !strcmp(argv[1], "list")) {
		list(rtrs_cases);
		list(rnbd_cases);
		return 0;
	}
	if (argc < 5 || strcmp(argv[1], "client") || set_addr(argv[2], argv[3]))
		return usage();
	failed += run_tests(rtrs_cases, argv + 4, argc - 4);
	failed += run_tests(rnbd_cases, argv + 4, argc - 4);
	return failed ? 1 : 0;
}
