// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that go on until they are interrupted, and then have something to say
 */
#include <signal.h>

#include "rnbd.h"

/* Written by a handler, and read by threads */
static sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

/* From now on an interrupt ends naps and waits, and stopped() is true. */
void stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
}

bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}
