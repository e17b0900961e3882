// SPDX-License-Identifier: GPL-2.0
/*
 * Signals for commands that run until they are interrupted, and then print a result
 */
#include <signal.h>

#include "rnbd.h"

/* Set by a signal handler, read by threads */
static sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

/* Make a signal interrupt sleeping, and set stopped(), instead of ending the process. */
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
