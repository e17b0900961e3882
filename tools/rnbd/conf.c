// SPDX-License-Identifier: GPL-2.0
/*
 * The server's configuration file: the modules' parameters, the policy, and a section for each
 * tenant, host and volume.
 *
 *	PARAMETER = VALUE
 *	policy = open|listed
 *
 *	[tenant NAME]
 *	netns = PATH
 *
 *	[host [TENANT/]NAME]
 *	ATTRIBUTE = VALUE
 *
 *	[volume [TENANT/]NAME]
 *	ATTRIBUTE = VALUE
 *
 * All errors are reported, with their line numbers.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules.h"

/* In the order in which the modules are loaded */
const struct parameter parameters[NR_PARAMETERS] = {
	{ "max_chunk_size", RTRS_SERVER, false },
	{ "slot_size", RTRS_SERVER, false },
	{ "sess_queue_depth", RTRS_SERVER, false },
	{ "always_invalidate", RTRS_SERVER, false },
	{ "max_memory", RTRS_SERVER, true },
	{ "max_fetch", RTRS_SERVER, true },
	{ "max_handshakes", RTRS_SERVER, true },
	{ "port_nr", RNBD_SERVER, false },
	{ "dev_search_path", RNBD_SERVER, false },
	{ "export_files", RNBD_SERVER, false },
	{ "claim", RNBD_SERVER, true },
	{ "handover_grace", RNBD_SERVER, true },
	{ "state_dir", RNBD_SERVER, false },
};

/* State of reading the file */
struct reader {
	const char *file;
	int line;
	struct conf *conf;
	/* The line is in the section of the last rule, or in an invalid section. */
	bool in_rule, in_wrong;
};

/* Report "FILE:LINE: @why", and free @why. */
static int wrong(const struct reader *reader, char *why)
{
	report_usage("%s:%d: %s", reader->file, reader->line, text_clean(why));
	free(why);
	return exit_usage;
}

static int __printf(2, 3) wrong_line(const struct reader *reader, const char *fmt, ...)
{
	va_list args;
	char *why;

	va_start(args, fmt);
	if (vasprintf(&why, fmt, args) < 0)
		why = xstrdup("no memory");
	va_end(args);
	return wrong(reader, why);
}

/* Remove surrounding blanks, then a pair of quotes. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	if (n > 1 && (*text == '"' || *text == '\'') && text[n - 1] == *text) {
		text++;
		n -= 2;
	}
	text[n] = 0;
	return text;
}

/* Parse "[tenant NAME]", "[host NAME]" or "[volume NAME]". */
static int take_section(struct reader *reader, char *text)
{
	char *end = strchr(text, ']'), *name, *why;
	enum rule_kind kind = 0;
	struct rule *rule;

	reader->in_rule = false;
	reader->in_wrong = true;
	if (!end || end[1])
		return wrong_line(reader, "'%s' is not [tenant NAME], [host NAME] or [volume NAME]",
				  text);
	*end = 0;
	text++;
	name = text + strcspn(text, " \t");
	if (*name)
		*name++ = 0;
	while (kind < NR_RULE_KINDS && strcmp(text, rule_kind_name(kind)))
		kind++;
	if (kind == NR_RULE_KINDS)
		return wrong_line(reader,
				  "there are sections of a tenant, a host or a volume, none of '%s'",
				  text);
	why = rules_add(&reader->conf->rules, kind, trim(name), &rule);
	if (why)
		return wrong(reader, why);
	rule->line = reader->line;
	reader->in_rule = true;
	reader->in_wrong = false;
	return RNBD_OK;
}

static int take_parameter(struct reader *reader, const char *name, const char *value)
{
	char *why, **values = reader->conf->values;
	size_t i = 0;

	if (!strcmp(name, "policy")) {
		reader->conf->has_rules = true;
		why = rules_set_policy(&reader->conf->rules, value);
		return why ? wrong(reader, why) : RNBD_OK;
	}
	while (i < NR_PARAMETERS && strcmp(name, parameters[i].name))
		i++;
	if (i == NR_PARAMETERS)
		return wrong_line(reader, "the server has no parameter '%s'", name);
	if (values[i])
		return wrong_line(reader, "%s is given twice", name);
	if (!*value || strpbrk(value, "\"\\"))
		return wrong_line(reader, "'%s' is no value for %s", value, name);
	values[i] = xstrdup(value);
	return RNBD_OK;
}

static int take_line(struct reader *reader, char *text)
{
	struct rules *rules = &reader->conf->rules;
	char *name = trim(text), *value = strchr(name, '='), *why;

	if (!*name || *name == '#')
		return RNBD_OK;
	if (*name == '[') {
		reader->conf->has_rules = true;
		return take_section(reader, name);
	}
	if (!value)
		return wrong_line(reader, "'%s' is not NAME = VALUE", name);
	*value++ = 0;
	name = trim(name);
	value = trim(value);
	/* The section's error has been reported. */
	if (reader->in_wrong)
		return RNBD_OK;
	if (!reader->in_rule)
		return take_parameter(reader, name, value);
	why = rule_set(&rules->all[rules->nr - 1], name, value);
	return why ? wrong(reader, why) : RNBD_OK;
}

static int check_whole(struct reader *reader)
{
	const struct rule *rule = NULL;
	char *why = rules_check(&reader->conf->rules, &rule);

	if (!why)
		return RNBD_OK;
	reader->line = rule->line;
	return wrong(reader, why);
}

/* Read the file; a missing file counts as empty. Returns an exit code, not RNBD_OK on any error. */
int conf_read(const struct rnbd *r, struct conf *conf)
{
	struct reader reader = { .file = r->server_conf, .conf = conf };
	int ret = RNBD_OK, one;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *file;

	memset(conf, 0, sizeof(*conf));
	file = fopen(r->server_conf, "re");
	if (!file && errno != ENOENT)
		return report_failed("%s: %s", r->server_conf, strerror(errno));
	while (file && (n = getline(&text, &room, file)) >= 0) {
		reader.line++;
		one = strlen(text) == (size_t)n ? take_line(&reader, text) :
						  wrong_line(&reader, "there is a NUL in it");
		ret = one ? one : ret;
	}
	if (file && ferror(file))
		ret = report_failed("%s: %s", r->server_conf, strerror(errno));
	free(text);
	if (file)
		fclose(file);
	if (!ret)
		ret = check_whole(&reader);
	if (!ret)
		rules_fill(&conf->rules);
	return ret;
}

void conf_free(struct conf *conf)
{
	size_t i;

	for (i = 0; i < NR_PARAMETERS; i++)
		free(conf->values[i]);
	rules_free(&conf->rules);
}

/* Check for the line that sets the policy. */
static bool is_policy(const char *text)
{
	text += strspn(text, " \t");
	if (!starts_with(text, "policy"))
		return false;
	text += strlen("policy");
	return text[strspn(text, " \t")] == '=';
}

/* Copy the lines before the first section, without the policy and trailing blank lines. */
static void copy_head(FILE *from, FILE *to)
{
	size_t room = 0, blank = 0;
	char *text = NULL;

	while (getline(&text, &room, from) >= 0) {
		text[strcspn(text, "\n")] = 0;
		if (text[strspn(text, " \t")] == '[')
			break;
		if (!text[strspn(text, " \t\r")]) {
			blank++;
		} else if (!is_policy(text)) {
			for (; blank; blank--)
				fputc('\n', to);
			fprintf(to, "%s\n", text);
		}
	}
	free(text);
}

static int write_conf(FILE *from, FILE *to, const struct rules *rules)
{
	struct stat st;

	if (from && !fstat(fileno(from), &st) && fchmod(fileno(to), st.st_mode & 07777))
		return errno;
	if (from)
		copy_head(from, to);
	rules_print(to, rules);
	return fflush(to) || ferror(to) || fsync(fileno(to)) ? errno : 0;
}

/*
 * Replace the rules in the file, but keep the parameters. The file is replaced atomically, so that
 * concurrent readers, and readers after a crash, find either the old or the new one.
 */
int conf_save(const struct rnbd *r, const struct rules *rules)
{
	char *name = xasprintf("%s.new", r->server_conf);
	FILE *from, *to;
	int err = 0;

	if (r->dry_run) {
		rules_print(stdout, rules);
		free(name);
		return RNBD_OK;
	}
	from = fopen(r->server_conf, "re");
	if (!from && errno != ENOENT)
		err = errno;
	to = err ? NULL : fopen(name, "we");
	if (!err && !to)
		err = errno;
	if (to) {
		err = write_conf(from, to, rules);
		fclose(to);
	}
	if (!err && rename(name, r->server_conf))
		err = errno;
	if (err && to)
		unlink(name);
	if (from)
		fclose(from);
	free(name);
	return err ? report_failed("%s: %s", r->server_conf, strerror(err)) : RNBD_OK;
}
