/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is to come of a client's requests, whatever is in them.
 */
#ifndef HOSTILE_ORACLE_H
#define HOSTILE_ORACLE_H

#include "hostile.h"

#define NR_OPENED	16

/**
 * struct opened - a device that the session has open
 * @name: by which it was opened
 * @mode: access mode
 * @rsp: the server's answer, with the id
 * @closing: CLOSEs of it that are not answered
 * @unsure: it may have been closed since
 */
struct opened {
	char name[255];
	u8 mode;
	struct open_rsp rsp;
	unsigned int closing;
	bool unsure;
};

/**
 * struct expected - what may come of a request that is not answered
 * @errs: errnos that may be the answer, a bit for each
 * @type: type of its message, one of none if there's none
 * @id: of the device that it is about
 * @unknown: it is about a device that wasn't known to be open
 * @counted: it is an OPEN or CLOSE that may succeed
 * @mode: of an OPEN
 * @name: of an OPEN
 * @unsure: of an OPEN: a CLOSE was under way at the same time
 */
struct expected {
	unsigned __int128 errs;
	u16 type;
	u32 id;
	bool unknown;
	bool counted;
	u8 mode;
	char name[255];
	bool unsure;
};

/**
 * struct oracle - of a path that is the only one of its session
 * @opened: devices, those with a name
 * @expected: by slot
 * @pending: slots with a request, a bit for each
 * @opens: OPENs that are not answered, and may succeed
 * @closes: the same of CLOSEs
 * @wild: something was sent after which anything may be answered, or the path end
 * @fatal_at: when something was first sent after which the path has to end, or 0
 * @judged: answers that were compared
 * @done: I/O that was carried out
 */
struct oracle {
	struct opened opened[NR_OPENED];
	struct expected expected[NR_AREAS];
	u32 pending;
	unsigned int opens;
	unsigned int closes;
	bool wild;
	u64 fatal_at;
	unsigned int judged;
	unsigned int done;
};

int oracle_opened(struct oracle *o, const char *name, u8 mode, const struct open_rsp *rsp);
void oracle_sent(struct oracle *o, struct path *p, const struct request *r);
int oracle_answered(struct oracle *o, struct path *p, unsigned int slot);

#endif
