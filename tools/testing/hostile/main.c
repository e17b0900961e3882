// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that sends invalid RTRS and RNBD messages: as a client to a server, or as a server to a
 * client, in directed cases and at random.
 *
 *	hostile list
 *	hostile client ADDR PORT all|CASE...	directed cases with a server
 *	hostile server ADDR PORT all|CASE...	directed cases with this machine's client
 *	hostile random-client ADDR PORT SEED MESSAGES
 *	hostile random-server ADDR PORT SEED REQUESTS
 *
 * CASE is a pattern. Prints "ok CASE" or "not ok CASE: why" for each. The reasons are searched in
 * this machine's kernel log, so the server must be on this machine. Environment:
 *
 *	HOSTILE_QUIET		do not check the log: faster, or with a server elsewhere
 *	HOSTILE_UNLIMITED	this kernel does not rate-limit the drivers' messages
 *	HOSTILE_LIMITED		it does: do not check some messages
 *	HOSTILE_SLOTS		all cases of a client offer slots
 *	HOSTILE_NO_IMM		they also send messages in place of immediate data, as over iWARP
 *	HOSTILE_RW, _OTHER	devices that may be written to
 *	HOSTILE_SLOW		device with a latency of SLOW_MS
 *	HOSTILE_HELD		the device mapper's device "held"
 *	HOSTILE_KEYS		Y or N: the server's always_invalidate
 *	HOSTILE_ADDR2, _ADDR3	further addresses of the server
 *	HOSTILE_KEY		a secret, see prove.c
 *	HOSTILE_FROM, _STOP, _TOLD	see flood.c
 *	HOSTILE_POLICY		see oracle.c
 *	HOSTILE_SCHEDULES, _RESTART	see generation.c
 */
#include <fnmatch.h>
#include <unistd.h>

#include "server.h"

const char *test_name;
char note[300];
char **args;
char dev_rw[255];
char dev_slow[256];
char dev_other[256];
char dev_held[255];
struct sockaddr_storage addrs[3];

/*
 * The kernel limits such messages to 10 in 5 seconds, except for the debug kernel's modules. No
 * message may be suppressed here.
 */
#define LOG_BURST	9
#define LOG_MS		5100

static struct burst {
	u64 at[LOG_BURST];
	unsigned int nr;
} ended, refused;

void count_ended(void)
{
	ended.at[ended.nr++ % LOG_BURST] = now_ms();
}

void count_refused(void)
{
	refused.at[refused.nr++ % LOG_BURST] = now_ms();
}

static bool unlimited;

static void pace(const struct burst *b)
{
	u64 oldest = b->at[b->nr % LOG_BURST];

	while (!quiet && !unlimited && oldest && now_ms() < oldest + LOG_MS)
		nap_us(20000);
}

/* Bitmap of patterns that have matched a case */
static u64 patterns_met;

/* Is the case chosen by a pattern, or by "all" and not extra? */
bool chosen(const char *name, bool extra, char **patterns, int nr)
{
	bool found = false;
	int i;

	for (i = 0; i < nr; i++) {
		if ((strcmp(patterns[i], "all") || extra) &&
		    fnmatch(patterns[i], name, 0))
			continue;
		patterns_met |= 1ull << (i % 64);
		found = true;
	}
	return found;
}

/* The number of patterns that have matched no case; prints them. */
int not_chosen(char **patterns, int nr)
{
	int i, n = 0;

	for (i = 0; i < nr; i++) {
		if (patterns_met & 1ull << (i % 64))
			continue;
		printf("not ok %s: no such case\n", patterns[i]);
		n++;
	}
	return n;
}

/* Runs the quiet cases of a table, or the others. */
static int run_tests(const struct test *t, bool extra, bool quiet_ones, char **patterns,
		     int nr)
{
	const bool all_quiet = getenv("HOSTILE_QUIET");
	int failed = 0;
	char name[64];
	u64 start;

	unlimited = getenv("HOSTILE_UNLIMITED");
	for (; t->name; t++) {
		quiet = all_quiet || t->quiet;
		if (!chosen(t->name, extra || t->extra, patterns, nr) ||
		    t->quiet != quiet_ones)
			continue;
		pace(&ended);
		pace(&refused);
		snprintf(name, sizeof(name), "h-%s", t->name);
		test_name = name;
		note[0] = 0;
		log_mark();
		start = now_ms();
		if (t->run(t->arg)) {
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

static void list_server(const struct srv_test *t)
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

/* For the case that kills this process: a session with requests in flight */
static void hold(const char *sess)
{
	if (!path_with_reads(sess, 2, 8))
		printf("no: %s\n", why);
	else
		printf("yes\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* A session with OPENs of a device that hangs in all slots */
static void hold_opens(const char *sess)
{
	struct path *p = path_up(sess);

	printf(p && !open_all_slots(p) ? "yes\n" : "no: %s\n", why);
	fflush(stdout);
	for (;;)
		pause();
}

/*
 * A session that leaves devices open: the disk of HOSTILE_RW is going to be removed, and
 * HOSTILE_SLOW is not opened again after a second SESS_INFO.
 */
static void keep_open(const char *sess)
{
	struct path *p = path_up(sess);

	printf(p && !leave_open(p) ? "yes\n" : "no: %s\n", why);
	fflush(stdout);
	for (;;) {
		path_poll(p);
		nap_us(10000);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: hostile list\n"
		"       hostile client|server ADDR PORT all|CASE...\n"
		"       hostile random-client ADDR PORT SEED MESSAGES\n"
		"       hostile random-server ADDR PORT SEED REQUESTS\n");
	return 2;
}

/* "all" chooses from the first NR_ALL tables. */
#define NR_ALL	5

static const struct test *const client_cases[] = {
	connect_cases, request_cases, rnbd_cases, fence_cases, generation_cases,
	/* These need slots, or another set-up. */
	pull_cases, scribble_cases, no_imm_cases, proof_cases, flood_cases,
};

int main(int argc, char **argv)
{
	static const char *const addr_env[] = { "", "HOSTILE_ADDR2", "HOSTILE_ADDR3" };
	unsigned int i;
	int failed = 0;

	take_env("HOSTILE_RW", dev_rw, sizeof(dev_rw));
	take_env("HOSTILE_OTHER", dev_other, sizeof(dev_other));
	take_env("HOSTILE_SLOW", dev_slow, sizeof(dev_slow));
	take_env("HOSTILE_HELD", dev_held, sizeof(dev_held));
	srv_keys = getenv("HOSTILE_KEYS");
	all_no_imm = getenv("HOSTILE_NO_IMM");
	all_slots = all_no_imm || getenv("HOSTILE_SLOTS");
	log_mark();
	rnd_seed(now_ms());
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < ARRAY_SIZE(client_cases); i++)
			list(client_cases[i]);
		list_server(server_cases);
		list_server(again_cases);
		list_server(pulled_cases);
		list_server(listed_cases);
		return 0;
	}
	args = argv;
	if (argc >= 5 && !strcmp(argv[1], "server"))
		return run_server(argv[2], argv[3], argv + 4, argc - 4) ? 1 : 0;
	if (argc == 6 && !strcmp(argv[1], "random-client") &&
	    !set_addr(&addrs[0], argv[2], argv[3]))
		return random_client(strtoull(argv[4], NULL, 0), atoi(argv[5])) ? 1 : 0;
	if (argc == 6 && !strcmp(argv[1], "random-server"))
		return random_server(argv[2], argv[3], strtoull(argv[4], NULL, 0),
				     atoi(argv[5])) ? 1 : 0;
	if (argc < 5 || strcmp(argv[1], "client") || set_addr(&addrs[0], argv[2], argv[3]))
		return usage();
	for (i = 1; i < 3; i++)
		if (getenv(addr_env[i]))
			set_addr(&addrs[i], getenv(addr_env[i]), argv[3]);
	if (!strcmp(argv[4], "hold"))
		hold(argv[5]);
	if (!strcmp(argv[4], "hold-fetching"))
		hold_fetching(argv[5]);
	if (!strcmp(argv[4], "hold-opens"))
		hold_opens(argv[5]);
	if (!strcmp(argv[4], "keep-open"))
		keep_open(argv[5]);
	for (i = 0; i < 2 * ARRAY_SIZE(client_cases); i++)
		failed += run_tests(client_cases[i % ARRAY_SIZE(client_cases)],
				    i % ARRAY_SIZE(client_cases) >= NR_ALL,
				    i >= ARRAY_SIZE(client_cases), argv + 4,
				    argc - 4);
	failed += not_chosen(argv + 4, argc - 4);
	return failed ? 1 : 0;
}
