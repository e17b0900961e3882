// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: parser of lines written to map_device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": map_device: " fmt

#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/parser.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "rnbd-clt.h"

/* Characters that separate the words of a line */
#define RNBD_CLT_SPACES		" \t\n"

enum {
	OPT_SESSNAME,
	OPT_PATH,
	OPT_DEVICE_PATH,
	OPT_ACCESS_MODE,
	OPT_DEST_PORT,
	OPT_NR_POLL_QUEUES,
	OPT_NR_QUEUES,
	OPT_QUEUE_DEPTH,
	OPT_KEY,
	OPT_UNKNOWN,
};

static const match_table_t rnbd_clt_opts = {
	{ OPT_SESSNAME,		"sessname=%s" },
	{ OPT_PATH,		"path=%s" },
	{ OPT_DEVICE_PATH,	"device_path=%s" },
	{ OPT_ACCESS_MODE,	"access_mode=%s" },
	{ OPT_DEST_PORT,	"dest_port=%s" },
	{ OPT_NR_POLL_QUEUES,	"nr_poll_queues=%s" },
	{ OPT_NR_QUEUES,	"nr_queues=%s" },
	{ OPT_QUEUE_DEPTH,	"queue_depth=%s" },
	{ OPT_KEY,		"key=%s" },
	{ OPT_UNKNOWN,		NULL },
};

static int rnbd_clt_parse_sessname(const char *val,
				   struct rnbd_clt_map_opts *opts)
{
	if (!rtrs_name_valid(val)) {
		pr_err("sessname=%.64s: at most %d characters, none of them / or .\n",
		       val, RTRS_NAME_LEN - 1);
		return -EINVAL;
	}
	opts->sessname = val;
	return 0;
}

static int rnbd_clt_parse_device_path(const char *val,
				      struct rnbd_clt_map_opts *opts)
{
	if (strlen(val) >= RNBD_NAME_LEN) {
		pr_err("device_path=%.64s: longer than %d characters\n", val,
		       RNBD_NAME_LEN - 1);
		return -EINVAL;
	}
	opts->dev_path = val;
	return 0;
}

static int rnbd_clt_parse_access_mode(const char *val,
				      struct rnbd_clt_map_opts *opts)
{
	int mode = match_string(rnbd_clt_access_names, RNBD_ACCESS_MODES, val);

	if (mode < 0) {
		pr_err("access_mode=%.64s: neither ro, rw, migration nor handover\n", val);
		return -EINVAL;
	}
	opts->access_mode = mode;
	return 0;
}

static int rnbd_clt_parse_port(const char *val, struct rnbd_clt_map_opts *opts)
{
	if (kstrtou16(val, 10, &opts->port) || !opts->port) {
		pr_err("dest_port=%.64s: not a number from 1 to 65535\n", val);
		return -EINVAL;
	}
	return 0;
}

static int rnbd_clt_parse_poll(const char *val, struct rnbd_clt_map_opts *opts)
{
	int max = min_t(int, num_possible_cpus(), RNBD_CLT_MAX_QUEUES);
	int nr;

	if (kstrtoint(val, 10, &nr) || nr < -1 || nr > max) {
		pr_err("nr_poll_queues=%.64s: not a number from -1 to %d\n", val, max);
		return -EINVAL;
	}
	if (nr && IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("nr_poll_queues=%.64s: not on a PREEMPT_RT kernel: locks sleep\n", val);
		return -EOPNOTSUPP;
	}
	opts->nr_poll_queues = nr < 0 ? min_t(int, num_online_cpus(), max) : nr;
	return 0;
}

static int rnbd_clt_parse_queues(const char *val, struct rnbd_clt_map_opts *opts)
{
	unsigned int max = min_t(unsigned int, num_possible_cpus(), RNBD_CLT_MAX_QUEUES);

	if (kstrtouint(val, 10, &opts->nr_queues) || !opts->nr_queues ||
	    opts->nr_queues > max) {
		pr_err("nr_queues=%.64s: not a number from 1 to %u\n", val, max);
		return -EINVAL;
	}
	return 0;
}

static int rnbd_clt_parse_depth(const char *val, struct rnbd_clt_map_opts *opts)
{
	if (kstrtouint(val, 10, &opts->queue_depth) || !opts->queue_depth ||
	    opts->queue_depth > RNBD_CLT_MAX_DEPTH) {
		pr_err("queue_depth=%.64s: not a number from 1 to %u\n", val,
		       RNBD_CLT_MAX_DEPTH);
		return -EINVAL;
	}
	return 0;
}

/* Store a path, to be parsed when the port is known: dest_port may follow. */
static int rnbd_clt_keep_path(const char *val, struct rnbd_clt_map_opts *opts)
{
	if (opts->nr_paths == RTRS_MAX_PATHS) {
		pr_err("more than %d paths\n", RTRS_MAX_PATHS);
		return -EINVAL;
	}
	opts->path_strs[opts->nr_paths++] = val;
	return 0;
}

/* Store a setting of the session. Settings have the names of the session's attributes in sysfs. */
static int rnbd_clt_keep_setting(char *word, struct rnbd_clt_map_opts *opts)
{
	struct rnbd_clt_setting *setting = &opts->settings[opts->nr_settings];
	char *val = strchr(word, '=');
	unsigned int i;
	int err = -ENOENT;

	if (val) {
		*val = '\0';
		err = rtrs_clt_check_setting(word, val + 1);
	}
	if (err == -ENOENT) {
		if (val)
			*val = '=';
		pr_err("%.64s: no such option, or no value\n", word);
		return -EINVAL;
	}
	if (err) {
		pr_err("%s=%.64s: the session takes no such value\n", word, val + 1);
		return -EINVAL;
	}
	for (i = 0; i < opts->nr_settings; i++) {
		if (!strcmp(opts->settings[i].name, word)) {
			pr_err("%s: this option was given before\n", word);
			return -EINVAL;
		}
	}
	setting->name = word;
	setting->val = val + 1;
	opts->nr_settings++;
	return 0;
}

static int rnbd_clt_parse_opt(int opt, const char *val,
			      struct rnbd_clt_map_opts *opts)
{
	switch (opt) {
	case OPT_SESSNAME:
		return rnbd_clt_parse_sessname(val, opts);
	case OPT_PATH:
		return rnbd_clt_keep_path(val, opts);
	case OPT_DEVICE_PATH:
		return rnbd_clt_parse_device_path(val, opts);
	case OPT_ACCESS_MODE:
		return rnbd_clt_parse_access_mode(val, opts);
	case OPT_DEST_PORT:
		return rnbd_clt_parse_port(val, opts);
	case OPT_NR_QUEUES:
		return rnbd_clt_parse_queues(val, opts);
	case OPT_QUEUE_DEPTH:
		return rnbd_clt_parse_depth(val, opts);
	case OPT_KEY:
		opts->key = val;
		return 0;
	default:
		return rnbd_clt_parse_poll(val, opts);
	}
}

static int rnbd_clt_parse_paths(struct rnbd_clt_map_opts *opts)
{
	const char *str;
	unsigned int i;
	int err;

	for (i = 0; i < opts->nr_paths; i++) {
		str = opts->path_strs[i];
		err = rtrs_addr_parse(opts->net, str, opts->port, &opts->paths[i]);
		if (err == -EADDRNOTAVAIL)
			pr_err("path=%.64s: a GID can be used in the initial network namespace only\n",
			       str);
		else if (err)
			pr_err("path=%.64s: not [SRC,]DST, both ip:ADDRESS or both gid:GID (%pe)\n",
			       str, ERR_PTR(err));
		if (err)
			return err;
	}
	return 0;
}

static int rnbd_clt_set_label(struct rnbd_clt_map_opts *opts)
{
	int len;

	if (net_eq(opts->net, &init_net))
		len = snprintf(opts->label, sizeof(opts->label), "%s", opts->sessname);
	else
		len = snprintf(opts->label, sizeof(opts->label), "%s.%u", opts->sessname,
			       opts->net->ns.inum);
	if (len < sizeof(opts->label))
		return 0;
	pr_err("sessname=%.64s: too long for another network namespace than the initial one\n",
	       opts->sessname);
	return -ENAMETOOLONG;
}

/* Check the length of the link's name: longer names in sysfs could not be looked up. */
static int rnbd_clt_check_link(const struct rnbd_clt_map_opts *opts)
{
	size_t len = strlen(opts->dev_path) + strlen("@") + strlen(opts->label);

	if (len <= NAME_MAX)
		return 0;
	pr_err("device_path=%.64s: together with the session's name %zu characters too long\n",
	       opts->dev_path, len - NAME_MAX);
	return -ENAMETOOLONG;
}

/* Names reach the log and sysfs: reject unprintable bytes, and those beyond ASCII. */
static int rnbd_clt_check_chars(const char *line)
{
	const char *c;

	for (c = line; *c; c++) {
		if ((isascii(*c) && isprint(*c)) || strchr(RNBD_CLT_SPACES, *c))
			continue;
		pr_err("byte %td is not printable ASCII\n", c - line);
		return -EINVAL;
	}
	return 0;
}

/* Parse the words of a line; sets the bits of the options in it. */
static int rnbd_clt_parse_words(char *line, struct rnbd_clt_map_opts *opts, unsigned long *seen)
{
	substring_t args[MAX_OPT_ARGS];
	char *word;
	int opt, err;

	err = rnbd_clt_check_chars(line);
	if (err)
		return err;
	opts->access_mode = RNBD_ACCESS_RW;
	opts->port = RTRS_PORT;

	while ((word = strsep(&line, RNBD_CLT_SPACES))) {
		if (!*word)
			continue;
		opt = match_token(word, rnbd_clt_opts, args);
		if (opt == OPT_UNKNOWN) {
			err = rnbd_clt_keep_setting(word, opts);
			if (err)
				return err;
			continue;
		}
		if (opt != OPT_PATH && __test_and_set_bit(opt, seen)) {
			pr_err("%.64s: this option was given before\n", word);
			return -EINVAL;
		}
		err = rnbd_clt_parse_opt(opt, args[0].from, opts);
		if (err)
			return err;
	}
	opts->port_given = test_bit(OPT_DEST_PORT, seen);
	opts->poll_given = test_bit(OPT_NR_POLL_QUEUES, seen);
	return 0;
}

/**
 * rnbd_clt_parse() - parse a line that was written to map_device
 * @line: the text; modified, and referenced by @opts
 * @opts: result; zeroed by the caller, except for @net
 *
 * Return: 0, or a negative errno; the reason has been logged.
 */
int rnbd_clt_parse(char *line, struct rnbd_clt_map_opts *opts)
{
	unsigned long seen = 0;
	int err;

	err = rnbd_clt_parse_words(line, opts, &seen);
	if (err)
		return err;
	if (!opts->sessname || !opts->dev_path) {
		pr_err("%s= is missing\n",
		       opts->sessname ? "device_path" : "sessname");
		return -EINVAL;
	}
	return rnbd_clt_set_label(opts) ?: rnbd_clt_check_link(opts) ?:
	       rnbd_clt_parse_paths(opts);
}

/**
 * rnbd_clt_parse_discover() - parse a line that asks for the volumes of a server
 * @line: the text; modified, and referenced by @opts
 * @opts: result; zeroed by the caller, except for @net
 *
 * The line has options of map_device, but no options of a device and no settings of the session.
 *
 * Return: 0, or a negative errno; the reason has been logged.
 */
int rnbd_clt_parse_discover(char *line, struct rnbd_clt_map_opts *opts)
{
	unsigned long seen = 0;
	int err;

	err = rnbd_clt_parse_words(line, opts, &seen);
	if (err)
		return err;
	if (!opts->sessname) {
		pr_err("sessname= is missing\n");
		return -EINVAL;
	}
	if (opts->dev_path || test_bit(OPT_ACCESS_MODE, &seen) || opts->nr_settings) {
		pr_err("volumes are listed without device_path=, access_mode= and settings\n");
		return -EINVAL;
	}
	return rnbd_clt_set_label(opts) ?: rnbd_clt_parse_paths(opts);
}
