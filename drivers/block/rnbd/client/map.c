// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: parser of lines written to map_device and to /dev/rnbd-discover.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "rnbd-clt.h"

/* Characters that separate the words of a line */
#define RNBD_CLT_SPACES		" \t\n"

/* Log an error, with the name of the interface to which the line was written. */
#define rnbd_clt_line_err(opts, fmt, ...) \
	pr_err("%s: " fmt, (opts)->discover ? "rnbd-discover" : "map_device", ##__VA_ARGS__)
#define rnbd_clt_word_err(opts, name, val, fmt, ...) \
	rnbd_clt_line_err(opts, "%.64s=%.64s: " fmt, name, val, ##__VA_ARGS__)

static int rnbd_clt_parse_sessname(const char *name, const char *val,
				   struct rnbd_clt_map_opts *opts)
{
	if (!rtrs_name_valid(val)) {
		rnbd_clt_word_err(opts, name, val, "at most %d characters, none of them / or .\n",
				  RTRS_NAME_LEN - 1);
		return -EINVAL;
	}
	opts->sessname = val;
	return 0;
}

static int rnbd_clt_parse_device_path(const char *name, const char *val,
				      struct rnbd_clt_map_opts *opts)
{
	if (strlen(val) >= RNBD_NAME_LEN) {
		rnbd_clt_word_err(opts, name, val, "longer than %d characters\n",
				  RNBD_NAME_LEN - 1);
		return -EINVAL;
	}
	opts->dev_path = val;
	return 0;
}

static int rnbd_clt_parse_access_mode(const char *name, const char *val,
				      struct rnbd_clt_map_opts *opts)
{
	int mode = match_string(rnbd_clt_access_names, RNBD_ACCESS_MODES, val);

	if (mode < 0) {
		rnbd_clt_word_err(opts, name, val, "neither ro, rw, migration nor handover\n");
		return -EINVAL;
	}
	opts->access_mode = mode;
	return 0;
}

static int rnbd_clt_parse_number(const char *name, const char *val,
				 const struct rnbd_clt_map_opts *opts, int min, int max,
				 unsigned int *to)
{
	int nr;

	if (kstrtoint(val, 10, &nr) || nr < min || nr > max) {
		rnbd_clt_word_err(opts, name, val, "not a number from %d to %d\n", min, max);
		return -EINVAL;
	}
	*to = nr;
	return 0;
}

static int rnbd_clt_parse_port(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	opts->port_given = true;
	return rnbd_clt_parse_number(name, val, opts, 1, U16_MAX, &opts->port);
}

static int rnbd_clt_parse_poll(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	int max = min_t(int, num_possible_cpus(), RNBD_CLT_MAX_QUEUES);
	int err = rnbd_clt_parse_number(name, val, opts, -1, max, &opts->nr_poll_queues);

	if (err)
		return err;
	if (opts->nr_poll_queues && IS_ENABLED(CONFIG_PREEMPT_RT)) {
		rnbd_clt_word_err(opts, name, val, "not on a PREEMPT_RT kernel: locks sleep\n");
		return -EOPNOTSUPP;
	}
	/* -1 stands for each CPU. */
	if (opts->nr_poll_queues == -1U)
		opts->nr_poll_queues = min_t(int, num_online_cpus(), max);
	opts->poll_given = true;
	return 0;
}

static int rnbd_clt_parse_queues(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	return rnbd_clt_parse_number(name, val, opts, 1,
				     min_t(int, num_possible_cpus(), RNBD_CLT_MAX_QUEUES),
				     &opts->nr_queues);
}

static int rnbd_clt_parse_depth(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	return rnbd_clt_parse_number(name, val, opts, 1, RNBD_CLT_MAX_DEPTH, &opts->queue_depth);
}

static int rnbd_clt_parse_key(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	opts->key = val;
	return 0;
}

/* Store a path, to be parsed when the port is known: dest_port may follow. */
static int rnbd_clt_keep_path(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	if (opts->nr_paths == RTRS_MAX_PATHS) {
		rnbd_clt_line_err(opts, "more than %d paths\n", RTRS_MAX_PATHS);
		return -EINVAL;
	}
	opts->path_strs[opts->nr_paths++] = val;
	return 0;
}

/* @of_device: the option concerns a device, not its session. @repeated: may be given repeatedly */
static const struct {
	const char *name;
	int (*parse)(const char *name, const char *val, struct rnbd_clt_map_opts *opts);
	bool of_device;
	bool repeated;
} rnbd_clt_options[] = {
	{ "sessname", rnbd_clt_parse_sessname },
	{ "path", rnbd_clt_keep_path, .repeated = true },
	{ "device_path", rnbd_clt_parse_device_path, .of_device = true },
	{ "access_mode", rnbd_clt_parse_access_mode, .of_device = true },
	{ "dest_port", rnbd_clt_parse_port },
	{ "nr_poll_queues", rnbd_clt_parse_poll },
	{ "nr_queues", rnbd_clt_parse_queues },
	{ "queue_depth", rnbd_clt_parse_depth },
	{ "key", rnbd_clt_parse_key },
};

/* Store a setting of the session. Settings have the names of the session's attributes in sysfs. */
static int rnbd_clt_keep_setting(const char *name, const char *val, struct rnbd_clt_map_opts *opts)
{
	unsigned int i;
	int err;

	err = rtrs_clt_check_setting(name, val);
	if (err) {
		rnbd_clt_word_err(opts, name, val, "%s\n",
				  err == -ENOENT ? "no such option" :
						   "the session takes no such value");
		return -EINVAL;
	}
	for (i = 0; i < opts->nr_settings; i++) {
		if (!strcmp(opts->settings[i].name, name)) {
			rnbd_clt_word_err(opts, name, val, "this option was given before\n");
			return -EINVAL;
		}
	}
	opts->settings[opts->nr_settings++] = (struct rnbd_clt_setting){ name, val };
	return 0;
}

static int rnbd_clt_parse_word(const char *name, const char *val, unsigned long *seen,
			       struct rnbd_clt_map_opts *opts)
{
	unsigned int i = 0;

	while (i < ARRAY_SIZE(rnbd_clt_options) && strcmp(rnbd_clt_options[i].name, name))
		i++;
	if (opts->discover && (i == ARRAY_SIZE(rnbd_clt_options) ||
			       rnbd_clt_options[i].of_device)) {
		rnbd_clt_word_err(opts, name, val, "no option for a list of volumes\n");
		return -EINVAL;
	}
	if (i == ARRAY_SIZE(rnbd_clt_options))
		return rnbd_clt_keep_setting(name, val, opts);
	if (!*val) {
		rnbd_clt_word_err(opts, name, val, "no value\n");
		return -EINVAL;
	}
	if (__test_and_set_bit(i, seen) && !rnbd_clt_options[i].repeated) {
		rnbd_clt_word_err(opts, name, val, "this option was given before\n");
		return -EINVAL;
	}
	return rnbd_clt_options[i].parse(name, val, opts);
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
			rnbd_clt_word_err(opts, "path", str,
					  "a GID can be used in the initial network namespace only\n");
		else if (err)
			rnbd_clt_word_err(opts, "path", str,
					  "not [SRC,]DST, both ip:ADDRESS or both gid:GID (%pe)\n",
					  ERR_PTR(err));
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
	rnbd_clt_word_err(opts, "sessname", opts->sessname,
			  "too long for another network namespace than the initial one\n");
	return -ENAMETOOLONG;
}

/* Check the length of the link's name: longer names in sysfs could not be looked up. */
static int rnbd_clt_check_link(const struct rnbd_clt_map_opts *opts)
{
	size_t len = strlen(opts->dev_path ?: "") + strlen("@") + strlen(opts->label);

	if (len <= NAME_MAX || opts->discover)
		return 0;
	rnbd_clt_word_err(opts, "device_path", opts->dev_path,
			  "together with the session's name %zu characters too long\n",
			  len - NAME_MAX);
	return -ENAMETOOLONG;
}

/* Names reach the log and sysfs: reject unprintable bytes, and those beyond ASCII. */
static int rnbd_clt_check_chars(const char *line, const struct rnbd_clt_map_opts *opts)
{
	const char *c;

	for (c = line; *c; c++) {
		if ((isascii(*c) && isprint(*c)) || strchr(RNBD_CLT_SPACES, *c))
			continue;
		rnbd_clt_line_err(opts, "byte %td is not printable ASCII\n", c - line);
		return -EINVAL;
	}
	return 0;
}

/**
 * rnbd_clt_parse() - parse a line that was written to map_device or to /dev/rnbd-discover
 * @line: the text; modified, and referenced by @opts
 * @opts: result; zeroed by the caller, except for @net and @discover
 *
 * With @discover, the line has options of a session only, and no settings.
 *
 * Return: 0, or a negative errno; the reason has been logged.
 */
int rnbd_clt_parse(char *line, struct rnbd_clt_map_opts *opts)
{
	unsigned long seen = 0;
	char *name, *val;
	int err;

	opts->access_mode = RNBD_ACCESS_RW;
	opts->port = RTRS_PORT;
	err = rnbd_clt_check_chars(line, opts);
	while (!err && (val = strsep(&line, RNBD_CLT_SPACES))) {
		name = strsep(&val, "=");
		if (val) {
			err = rnbd_clt_parse_word(name, val, &seen, opts);
		} else if (*name) {
			rnbd_clt_line_err(opts, "%.64s: no such option, or no value\n", name);
			err = -EINVAL;
		}
	}
	if (err)
		return err;
	if (!opts->sessname || (!opts->dev_path && !opts->discover)) {
		rnbd_clt_line_err(opts, "%s= is missing\n",
				  opts->sessname ? "device_path" : "sessname");
		return -EINVAL;
	}
	return rnbd_clt_set_label(opts) ?: rnbd_clt_check_link(opts) ?:
	       rnbd_clt_parse_paths(opts);
}
