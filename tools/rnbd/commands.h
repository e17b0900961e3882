/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of the tool
 */
#ifndef RNBD_COMMANDS_H
#define RNBD_COMMANDS_H

#include "rnbd.h"

/* Options that only some commands accept, and HIDDEN */
enum {
	WATCH		= 1 << 0,
	COUNT		= 1 << 1,
	INTERVAL	= 1 << 2,
	SECONDS		= 1 << 3,
	PROMETHEUS	= 1 << 4,
	LOAD		= 1 << 5,
	RECONNECTS	= 1 << 6,
	LOGS		= 1 << 7,
	JSON		= 1 << 8,
	DRY_RUN		= 1 << 9,
	TABLE		= 1 << 10,
	WAIT		= 1 << 11,
	SAVE		= 1 << 12,
	ALL		= 1 << 13,
	/* No option: a command for scripts of this project, which help does not list */
	HIDDEN		= 1 << 14,
};

enum { ON_CLIENT = 1 << CLIENT, ON_SERVER = 1 << SERVER, ON_BOTH = ON_CLIENT | ON_SERVER };

struct command {
	/* "device", "session", "path", "tenant", "host" or "volume"; or NULL */
	const char *object;
	const char *name;
	int (*run)(struct rnbd *r, int argc, char **argv);
	unsigned int sides;
	unsigned int options;
	int min, max;
	const char *arguments, *text;
};

extern const struct command commands[];
extern const size_t nr_commands;

bool same_object(const char *a, const char *b);
bool command_takes(const struct command *c, const char *object);

/* ---- help.c ---- */

int print_help(const struct rnbd *r);
int help_object(const struct rnbd *r, const char *object);
int help_command(const struct rnbd *r, const char *object, const char *name);

#endif /* RNBD_COMMANDS_H */
