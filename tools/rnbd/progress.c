// SPDX-License-Identifier: GPL-2.0
/*
 * What a command waits for, and for how long. If stderr is a terminal, this is shown on its last
 * line after one second, and removed when the wait is over.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "rnbd.h"

/* More columns could wrap, and would then not be removed. Times need some of them. */
#define SCREEN_COLUMNS 80
#define TIME_COLUMNS 20

static struct {
	pthread_t thread;
	/* Protects @over. */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool runs, over, shown;
	char *doing;
	/* Expected duration; 0: unknown */
	double seconds;
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Check whether this is a job in the background, which leaves the terminal to others. */
static bool in_background(void)
{
	pid_t job = tcgetpgrp(STDERR_FILENO);

	return job >= 0 && job != getpgrp();
}

static size_t columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col || size.ws_col > SCREEN_COLUMNS)
		return SCREEN_COLUMNS - TIME_COLUMNS;
	return size.ws_col > TIME_COLUMNS ? size.ws_col - TIME_COLUMNS : 1;
}

static void show(unsigned int seconds)
{
	if (in_background())
		return;
	if (progress.seconds > 0)
		fprintf(stderr, "\r%s: %u of %.0f s", progress.doing, seconds, progress.seconds);
	else
		fprintf(stderr, "\r%s: %u s", progress.doing, seconds);
	fflush(stderr);
	progress.shown = true;
}

static void *show_on(void *arg)
{
	unsigned int seconds = 0;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	pthread_mutex_lock(&progress.lock);
	for (;;) {
		until.tv_sec++;
		while (!progress.over &&
		       !pthread_cond_timedwait(&progress.ended, &progress.lock, &until))
			;
		if (progress.over)
			break;
		show(++seconds);
	}
	pthread_mutex_unlock(&progress.lock);
	return arg;
}

/* Start a thread that takes no signals: other threads wait for these. */
static bool start(void)
{
	sigset_t all, before;
	bool is;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	is = !pthread_create(&progress.thread, NULL, show_on, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is;
}

/* Begin to wait. Print nothing else before progress_end(). */
void progress_begin(const char *doing, double seconds)
{
	pthread_condattr_t monotonic;

	if (!has_escapes(STDERR_FILENO))
		return;
	progress.doing = text_clean(xstrdup(doing));
	text_clip(progress.doing, columns());
	progress.seconds = seconds;
	progress.over = false;
	progress.shown = false;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&progress.ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	progress.runs = start();
}

/* The wait is over. */
void progress_end(void)
{
	if (progress.runs) {
		pthread_mutex_lock(&progress.lock);
		progress.over = true;
		pthread_cond_signal(&progress.ended);
		pthread_mutex_unlock(&progress.lock);
		pthread_join(progress.thread, NULL);
		pthread_cond_destroy(&progress.ended);
	}
	if (progress.runs && progress.shown && !in_background())
		fputs("\r\033[K", stderr);
	progress.runs = false;
	free(progress.doing);
	progress.doing = NULL;
}
