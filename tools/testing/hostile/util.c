// SPDX-License-Identifier: GPL-2.0
/*
 * Time, random numbers, reasons of failures, and the kernel's log
 */
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

char why[512];
bool quiet;

u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

void nap_us(unsigned int us)
{
	struct timespec ts = { .tv_nsec = us * 1000l };

	nanosleep(&ts, NULL);
}

/* Sets the reason of a failure; returns -1. */
int fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return -1;
}

/* splitmix64: the same sequence from the same seed on any machine. */
static u64 rnd_state;

void rnd_seed(u64 seed)
{
	rnd_state = seed;
}

u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u32 rnd_below(u32 n)
{
	return n ? rnd() % n : 0;
}

/* Lines that the kernel has logged since log_mark(), read by log_line() */
static int kmsg = -1;
static char *lines[4096];
static unsigned int nr_lines;

void log_mark(void)
{
	if (kmsg < 0)
		kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	lseek(kmsg, 0, SEEK_END);
	while (nr_lines)
		free(lines[--nr_lines]);
}

/* Line number @i since log_mark(), or NULL if there is none yet */
const char *log_line(unsigned int i)
{
	char buf[8192], *msg;
	ssize_t n;

	while (i >= nr_lines && nr_lines < ARRAY_SIZE(lines)) {
		n = read(kmsg, buf, sizeof(buf) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		buf[n] = 0;
		msg = strchr(buf, ';');
		if (!msg)
			continue;
		msg[strcspn(msg, "\n")] = 0;
		lines[nr_lines++] = strdup(msg + 1);
	}
	return i < nr_lines ? lines[i] : NULL;
}
