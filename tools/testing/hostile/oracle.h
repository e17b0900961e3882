/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The expected results of a client's requests
 */
#ifndef HOSTILE_ORACLE_H
#define HOSTILE_ORACLE_H

#include "hostile.h"

#define NR_OPENED	16

/* A device that the session has open */
struct opened {
	char name[255];
	u8 mode;			/* access mode */
	struct open_rsp rsp;		/* has the device ID */
	unsigned int closing;		/* CLOSEs of it in flight */
	bool unsure;			/* may have been closed */
};

/* The expected answer to a request in flight */
struct expected {
	unsigned __int128 errs;		/* bitmap of valid errnos */
	u16 type;			/* of the user message, NO_TYPE without one */
	u32 id;				/* of the device */
	bool unknown;			/* no device of that ID was known to be open */
	bool counted;			/* an OPEN or CLOSE that may succeed */
	u8 mode;			/* of an OPEN */
	char name[255];			/* of an OPEN */
	bool unsure;			/* an OPEN that was in flight together with a CLOSE */
};

/* State of the only path of a session */
struct oracle {
	struct opened opened[NR_OPENED];	/* entries in use have a name */
	struct expected expected[NR_AREAS];	/* by slot */
	u32 pending;			/* bitmap of slots in use */
	unsigned int opens;		/* OPENs in flight that may succeed */
	unsigned int closes;		/* CLOSEs in flight that may succeed */
	bool wild;			/* any answer is valid from now on, and the path may end */
	u64 fatal_at;			/* when a request was sent that must end the path, or 0 */
	unsigned int judged;		/* answers compared */
	unsigned int done;		/* I/Os completed */
};

int oracle_opened(struct oracle *o, const char *name, u8 mode, const struct open_rsp *rsp);
void oracle_sent(struct oracle *o, struct path *p, const struct request *r);
int oracle_answered(struct oracle *o, struct path *p, unsigned int slot);

#endif
