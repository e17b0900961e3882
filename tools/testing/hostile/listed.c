// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile server whose list of volumes is none.
 */
#include "server.h"

enum { L_GOOD, L_NO_FEATURE, L_NOTHING, L_TYPE, L_ONES, L_NR, L_NR_MAX, L_NAME_0, L_NAME_255,
	L_NAME_BEYOND, L_NAME_NUL, L_NAME_ESCAPE, L_SIZE, L_TWICE, L_CURSOR_SAME, L_CURSOR_BACK,
	L_ENDLESS, L_ERR, L_NEVER, L_RANDOM };

#define L_ROOM	4096

/* Grants the feature, and repeats the client's cookie. */
static void grant(const struct sreq *r, u32 features)
{
	struct sess_info info = { .type = RNBD_SESS_INFO_RSP, .ver = 2 };

	memcpy((u8 *)&info + 8, &features, sizeof(features));
	memcpy((u8 *)&info + 12, r->msg + 12, 4);
	s_reply(r, &info, sizeof(info), 0);
}

/* Adds a volume, whose name is repeated up to a length. Returns the entry. */
static struct list_entry *add(struct list_rsp *rsp, u32 *len, const char *name, u8 name_len)
{
	struct list_entry *entry = (void *)((u8 *)rsp + *len);
	unsigned int i;

	entry->modes = 15;
	entry->name_len = name_len;
	for (i = 0; i < name_len; i++)
		entry->name[i] = name[i % strlen(name)];
	*len += sizeof(*entry) + (name_len + 7) / 8 * 8;
	rsp->nr++;
	return entry;
}

static void list_wrong(struct srv *s, struct list_rsp *rsp, u32 *len)
{
	unsigned int i, n = s->requests[RNBD_LIST];
	struct list_entry *entry;

	switch (s->test->arg) {
	case L_TYPE:		rsp->type = RNBD_OPEN_RSP; break;
	case L_ONES:
		memset(rsp, 0xff, L_ROOM);
		*len = L_ROOM;
		rsp->type = RNBD_LIST_RSP;
		break;
	case L_NR:		rsp->nr++; break;
	case L_NR_MAX:		rsp->nr = 65535; break;
	case L_NAME_0:		add(rsp, len, "x", 0); break;
	case L_NAME_255:	add(rsp, len, "x", 255); break;
	case L_NAME_BEYOND:
		while (*len <= L_ROOM - 288)
			add(rsp, len, "x", 254);
		add(rsp, len, "x", 254);
		*len = L_ROOM;
		break;
	case L_NAME_NUL:
		entry = add(rsp, len, "x", 9);
		entry->name[4] = 0;
		break;
	case L_NAME_ESCAPE:	add(rsp, len, "\x1b[2J", 4); break;
	case L_SIZE:
		entry = add(rsp, len, "x", 1);
		entry->nsectors = -1;
		break;
	case L_TWICE:
		for (i = 0; i < 50; i++)
			add(rsp, len, "twice", 5);
		break;
	case L_CURSOR_SAME:	rsp->cursor = 7; break;
	case L_CURSOR_BACK:	rsp->cursor = 100 - n; break;
	case L_ENDLESS:
		for (i = 0; i < 50; i++)
			add(rsp, len, "x", 1 + i);
		rsp->cursor = n;
		break;
	case L_RANDOM:
		for (i = 0; i < 2000; i++)
			((u8 *)rsp)[i] = rnd();
		rsp->type = RNBD_LIST_RSP;
		if (rnd() & 1)
			rsp->nr = rnd_below(4);
		*len = L_ROOM;
		break;
	}
}

static bool list(struct srv *s, const struct sreq *r)
{
	static u8 buf[2 * L_ROOM];
	struct list_rsp *rsp = (void *)buf;
	u32 len = sizeof(*rsp);

	if (r->kind == RNBD_SESS_INFO) {
		grant(r, s->test->arg == L_NO_FEATURE ? 63 : -1);
		return true;
	}
	if (r->kind != RNBD_LIST)
		return false;
	if (s->test->arg == L_NO_FEATURE)
		s->complaint = "the client lists volumes of a server that can't list them";
	if (s->test->arg == L_NEVER)
		return true;
	memset(buf, 0, sizeof(buf));
	rsp->type = RNBD_LIST_RSP;
	add(rsp, &len, "volume", 6);
	list_wrong(s, rsp, &len);
	if (s->test->arg == L_NOTHING)
		len = 0;
	s_reply(r, buf, len, s->test->arg == L_ERR ? 5 : 0);
	return true;
}

#define LIST(name_, what, err_, arg_, more...) \
	{ .name = "list-" name_, .about = "list of volumes: " what, .discover = true, \
	  .request = list, .err = err_, .arg = arg_, more }

const struct srv_test listed_cases[] = {
	LIST("good", "all as it should be", 0, L_GOOD),
	LIST("no-feature", "the feature isn't granted", EOPNOTSUPP, L_NO_FEATURE),
	LIST("nothing", "an empty answer", EPROTO, L_NOTHING),
	LIST("type", "an answer of another type", EPROTO, L_TYPE),
	LIST("ones", "all ones", EPROTO, L_ONES),
	LIST("nr", "one more than there are", EPROTO, L_NR),
	LIST("nr-max", "65535 of them", EPROTO, L_NR_MAX),
	LIST("name-0", "no name", EPROTO, L_NAME_0),
	LIST("name-255", "a name that is too long", EPROTO, L_NAME_255),
	LIST("name-beyond", "a name that reaches beyond the answer", EPROTO, L_NAME_BEYOND),
	LIST("name-nul", "a NUL in a name", EPROTO, L_NAME_NUL),
	LIST("name-escape", "a control character in a name", EPROTO, L_NAME_ESCAPE),
	LIST("size", "more sectors than a disk can have", EPROTO, L_SIZE),
	LIST("twice", "the same name again and again: taken", 0, L_TWICE),
	LIST("cursor-same", "goes on where it was", EPROTO, L_CURSOR_SAME),
	LIST("cursor-back", "goes back", EPROTO, L_CURSOR_BACK),
	LIST("endless", "without an end", E2BIG, L_ENDLESS),
	LIST("err", "errno 5", EIO, L_ERR),
	LIST("random", "at random", ANY, L_RANDOM),
	LIST("silent", "no answer", ECONNABORTED, L_NEVER, .ms = 60000, .extra = true,
	     .log = ENDS "a request stays unanswered"),
	{ }
};
