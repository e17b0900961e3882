// SPDX-License-Identifier: GPL-2.0
/*
 * Error messages, with related lines of the kernel's log, and advice.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rnbd.h"

/* Exit codes; health sets both to RNBD_HEALTH_UNKNOWN. */
int exit_usage = RNBD_USAGE, exit_failed = RNBD_FAILED;

/* Longest record of the kernel's log */
#define RECORD_MAX 8192

/* @file: attribute that was written to; NULL matches any */
static const struct {
	const char *file;
	int err;
	const char *advice;
} advices[] = {
	{ "map_device", ENOENT,
	  "no such volume, or not for this client: see rnbd server rules, dev_search_path there" },
	{ "map_device", EEXIST, "it is mapped already: see rnbd list" },
	{ "map_device", ENXIO, "there is no such session: give a path, to open it with" },
	{ "map_device", EBUSY,
	  "another session has it open, or the server uses it: see rnbd server list there" },
	{ "map_device", EROFS, "it cannot be written to: map it with ro" },
	{ "map_device", EKEYREJECTED,
	  "the server requires a key, or another key, for that session or address: see its log" },
	{ "map_device", EACCES,
	  "the server's rules do not allow this access mode, or not these paths: see its log" },
	{ "add_path", EACCES, "by the server's rules, the path is of another host: see its log" },
	{ "reconnect", EACCES, "by the server's rules, the path is of another host: see its log" },
	{ "reconnect", EKEYREJECTED,
	  "the server requires a key, or another key, for that session or address: see its log" },
	{ "reconnect", EDQUOT,
	  "max_memory is reached: see rnbd server host list there" },
	{ "add_path", EKEYREJECTED, "the server has another key for that session" },
	{ "add_path", EAGAIN,
	  "too many paths of this address are being connected: try again" },
	{ "map_device", EDQUOT,
	  "max_sessions or max_memory is reached: see rnbd server host list there" },
	{ "map_device", EAGAIN,
	  "too many paths of this address are being connected: try again" },
	{ "add_path", EDQUOT,
	  "max_memory is reached: see rnbd server host list there" },
	{ "cgroup", ENOENT, "there is no such cgroup below /sys/fs/cgroup" },
	{ "cgroup", EOPNOTSUPP, "write +io to cgroup.subtree_control of the one above" },
	{ "map_device", ENOKEY, "load the key first: keyctl padd logon NAME @u" },
	{ "keys", ENOKEY, "load the key first: keyctl padd logon NAME @u" },
	{ "rnbd-discover", EOPNOTSUPP,
	  "the server can't list its volumes: its administrator knows their names" },
	{ "rnbd-discover", EKEYREJECTED,
	  "the server requires a key, or another key, for that session or address: see its log" },
	{ "rnbd-discover", EDQUOT,
	  "max_sessions or max_memory is reached: see rnbd server host list there" },
	{ "rnbd-discover", ENOKEY, "load the key first: keyctl padd logon NAME @u" },
	{ "rnbd-discover", EAGAIN,
	  "too many paths of this address are being connected: try again" },
	{ "rnbd-discover", ENOTCONN, "the session has no path at the moment: rnbd recover" },
	{ "rnbd-discover", EPROTO, "the server's list is malformed" },
	{ "map_device", ENOTBLK, "it is neither a disk nor a file that can be exported" },
	{ "map_device", EMFILE, "the session has 1024 volumes open: use another session" },
	{ "map_device", EOPNOTSUPP,
	  "a zoned disk, a server too old for handover, or polled queues on PREEMPT_RT" },
	{ "map_device", ENOTCONN, "the session has no path at the moment: rnbd recover" },
	{ "map_device", ENAMETOOLONG, "the names of volume and session are too long together" },
	{ "unmap_device", EBUSY,
	  "it is in use: unmount it first; or add the word force, and its requests fail" },
	{ "unmap_device", EALREADY, "it is being unmapped already" },
	{ "remap_device", EALREADY, "it is open: there is nothing to do" },
	{ "remap_device", ENOTCONN, "its session has no path: rnbd recover" },
	{ "remap_device", ENOENT,
	  "the server has no such volume any more, or not for this client" },
	{ "remap_device", EBADE,
	  "another client has written to it meanwhile: see rnbd server list there" },
	{ "remap_device", ESTALE,
	  "the server has another disk by that name: unmap it, then map it" },
	{ "resize", EFBIG,
	  "it is smaller on the server: shrink the file system, then give the size" },
	{ "add_path", EEXIST, "the session has a path between these addresses already" },
	{ "add_path", EMFILE, "the session has 128 paths" },
	{ NULL, ECONNREFUSED, "nothing listens there: is rnbd_server loaded, and the port right?" },
	{ NULL, ECONNRESET,
	  "is rnbd_server loaded there, and the port right? If so, its log says why it ended it" },
	{ NULL, EHOSTUNREACH, "no route, no RDMA device, or no answer: try rping" },
	{ NULL, ENETUNREACH, "no route to that address: look at ip route" },
	{ NULL, EADDRNOTAVAIL,
	  "this machine has no RDMA device with the source address: see rdma link" },
	{ NULL, ENODEV, "no RDMA device has such an address: see rdma link" },
	{ NULL, EMSGSIZE,
	  "full-size packets are lost: is the MTU the same on both ends, and between them?" },
	{ NULL, ETIMEDOUT, "no answer: look at the network and at the server" },
	{ NULL, EINVAL, "the kernel's log says which word is wrong" },
};

static const char *find_advice(const char *file, int err)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(advices); i++)
		if (advices[i].err == err &&
		    (!advices[i].file || !strcmp(advices[i].file, file)))
			return advices[i].advice;
	return NULL;
}

/* Begin to follow the kernel's log. An unreadable log is not an error. */
void kmsg_open(const struct rnbd *r, struct kmsg *kmsg)
{
	kmsg->fd = open(r->kmsg, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg->fd >= 0)
		lseek(kmsg->fd, 0, SEEK_END);
}

void kmsg_close(struct kmsg *kmsg)
{
	if (kmsg->fd >= 0)
		close(kmsg->fd);
}

/* Report a record: "level,number,time,flags;text", then lines that begin with a blank. */
static void report_record(char *record)
{
	char *text = strchr(record, ';');

	if (!text++)
		return;
	text[strcspn(text, "\n")] = 0;
	if (starts_with(text, "rnbd_") || starts_with(text, "rtrs_"))
		fprintf(stderr, "  kernel: %s\n", text_clean(text));
}

/* Report new records. A read returns one record. EPIPE: unread records were overwritten. */
static void report_kmsg(const struct kmsg *kmsg)
{
	char record[RECORD_MAX + 1];
	ssize_t n;

	if (kmsg->fd < 0)
		return;
	for (;;) {
		n = read(kmsg->fd, record, RECORD_MAX);
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			return;
		record[n] = 0;
		report_record(record);
	}
}

static int exit_code(int err)
{
	return err == EACCES || err == EPERM ? RNBD_NO_PERMISSION : RNBD_FAILED;
}

/* Report that @doing has failed with @err, in a write to the attribute @file. */
int report_write(const struct rnbd *r, struct kmsg *kmsg, const char *doing, const char *file,
		 int err)
{
	const char *name = strrchr(file, '/') + 1, *id = strerrorname_np(err);
	const char *advice = find_advice(name, err);

	/* sysfs returns ENODEV if an open attribute has been removed. */
	if ((err == ENOENT && !advice) ||
	    ((err == ENOENT || err == ENODEV) && access(file, F_OK)))
		return report_not_found("can't %s: it is gone", doing);
	if (exit_code(err) == RNBD_NO_PERMISSION && geteuid())
		advice = "run it as root";
	fprintf(stderr, "rnbd: can't %s: %s (%s)\n", doing, strerror(err), id ? id : "?");
	report_kmsg(kmsg);
	if (advice)
		fprintf(stderr, "  %s\n", advice);
	if (r->verbose)
		fprintf(stderr, "  written to %s\n", file);
	return exit_code(err);
}

int report_no_module(const struct rnbd *r, enum side side)
{
	if (r->sides[CLIENT] && r->sides[SERVER])
		fprintf(stderr, "rnbd: neither rnbd_client nor rnbd_server is loaded\n"
			"  modprobe rnbd_client, or on the server modprobe rnbd_server\n");
	else
		fprintf(stderr, "rnbd: the module rnbd_%s is not loaded\n  modprobe rnbd_%s\n",
			side_name(side), side_name(side));
	return RNBD_NO_MODULE;
}

/* Check that the module of a side to which the command applies is loaded. */
int need_module(const struct rnbd *r, const struct model *model)
{
	enum side side;

	for (side = CLIENT; side < NR_SIDES; side++)
		if (model->loaded[side])
			return RNBD_OK;
	return report_no_module(r, r->sides[CLIENT] ? CLIENT : SERVER);
}

/* Read the model, and check that a module is loaded. The caller always frees the model. */
int need_model(const struct rnbd *r, struct model *model)
{
	model_read(r, model);
	return need_module(r, model);
}

/* Print an error message. Returns @code. */
int report_as(int code, const char *fmt, ...)
{
	va_list args;

	fputs("rnbd: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

/* Report the description of an error, if any, and free it. */
int report_error(char *error)
{
	if (!error)
		return RNBD_OK;
	report_usage("%s", error);
	free(error);
	return exit_usage;
}

int report_bad_path(const char *text)
{
	return report_usage("'%s' is no path: [SRC,]DST, each ip:ADDRESS, gid:GID or a host name",
			    text);
}
