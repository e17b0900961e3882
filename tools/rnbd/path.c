// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd path add, delete, readd, reconnect, disconnect, reset; rnbd session reconnect, disconnect,
 * set
 */
#include <stdlib.h>
#include <string.h>

#include "volumes.h"

/* An operation on a path, and the attribute that triggers it */
struct action {
	const char *verb, *attribute;
};

static const struct action reconnect = { "reconnect", "reconnect" };
static const struct action disconnect = { "disconnect", "disconnect" };
static const struct action delete = { "delete", "remove_path" };
static const struct action reset = { "reset the statistics of", "stats/reset_all" };

static int act(const struct rnbd *r, const struct action *action, const struct path *path)
{
	char *doing = xasprintf("%s %s of %s", action->verb, path->name, path->session->name);
	int ret = sysfs_set(r, doing, path->dir, action->attribute, "1");

	free(doing);
	return ret;
}

/* Act on all paths, or on all paths of a session. Continues after errors. */
static int act_on_all(const struct rnbd *r, const struct action *action,
		      const struct model *model, const struct session *of)
{
	const struct session *session;
	int ret = RNBD_OK, one;
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++) {
		session = &model->sessions[i];
		if (of && of != session)
			continue;
		for (j = 0; j < session->nr_paths; j++) {
			one = act(r, action, &session->paths[j]);
			if (one)
				ret = one;
		}
	}
	return ret;
}

/* Act on [SESSION] PATH, or [SESSION] all. */
static int act_on(const struct rnbd *r, const struct action *action, const struct model *model,
		  const char *session_name, const char *name)
{
	const struct session *session = NULL;
	const struct path *path;
	int ret = RNBD_OK;

	if (session_name)
		ret = find_session(model, session_name, &session);
	if (ret)
		return ret;
	if (!strcmp(name, "all"))
		return act_on_all(r, action, model, session);
	ret = find_path(model, session_name, name, &path);
	return ret ? ret : act(r, action, path);
}

static int path_command(const struct rnbd *r, const struct action *action,
			const char *session_name, const char *name)
{
	struct model model;
	int ret;

	ret = need_model(r, &model);
	if (!ret)
		ret = act_on(r, action, &model, session_name, name);
	model_free(&model);
	return ret;
}

int cmd_path_reconnect(struct rnbd *r, int argc, char **argv)
{
	return path_command(r, &reconnect, argc > 1 ? argv[0] : NULL, argv[argc - 1]);
}

int cmd_path_disconnect(struct rnbd *r, int argc, char **argv)
{
	return path_command(r, &disconnect, argc > 1 ? argv[0] : NULL, argv[argc - 1]);
}

int cmd_path_delete(struct rnbd *r, int argc, char **argv)
{
	return path_command(r, &delete, argc > 1 ? argv[0] : NULL, argv[argc - 1]);
}

int cmd_path_reset(struct rnbd *r, int argc, char **argv)
{
	return path_command(r, &reset, argc > 1 ? argv[0] : NULL, argv[argc - 1]);
}

int cmd_session_reconnect(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return path_command(r, &reconnect, argv[0], "all");
}

int cmd_session_disconnect(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return path_command(r, &disconnect, argv[0], "all");
}

/* Change settings of a session, which have all been checked. Ends at the first error. */
static int set_all(const struct rnbd *r, const struct session *session, int argc, char **argv)
{
	enum volume_option option;
	const char *value = NULL;
	int i, ret = RNBD_OK;
	char *doing;

	for (i = 0; i < argc && !ret; i++) {
		free(option_parse(argv[i], FIRST_SETTING, &option, &value));
		doing = xasprintf("set %s of %s", volume_option_name(option), session->name);
		ret = sysfs_set(r, doing, session->dir, volume_option_name(option), value);
		free(doing);
	}
	return ret;
}

/* Check settings: each is valid, and is given once. */
static int check_settings(int argc, char **argv)
{
	bool given[NR_VOLUME_OPTIONS] = { false };
	enum volume_option option;
	const char *value;
	int i, ret;

	for (i = 0; i < argc; i++) {
		ret = report_error(option_parse(argv[i], FIRST_SETTING, &option, &value));
		if (ret)
			return ret;
		if (given[option])
			return report_usage("%s is given twice", volume_option_name(option));
		given[option] = true;
	}
	return RNBD_OK;
}

/* Read the model, and find a session in it. Returns an exit code; the caller frees the model. */
static int need_session(const struct rnbd *r, const char *name, struct model *model,
			const struct session **session)
{
	int ret = need_model(r, model);

	return ret ? ret : find_session(model, name, session);
}

/* Arguments: SESSION SETTING=VALUE... Changes nothing if one of them is invalid. */
int cmd_session_set(struct rnbd *r, int argc, char **argv)
{
	const struct session *session;
	struct model model;
	int ret;

	ret = check_settings(argc - 1, argv + 1);
	if (ret)
		return ret;
	ret = need_session(r, argv[0], &model, &session);
	if (!ret)
		ret = set_all(r, session, argc - 1, argv + 1);
	model_free(&model);
	return ret;
}

static int add_path(const struct rnbd *r, const struct session *session, const char *text)
{
	char *doing = xasprintf("add the path %s to %s", text, session->name);
	int ret = sysfs_set(r, doing, session->dir, "add_path", text);

	free(doing);
	return ret;
}

/* Arguments: SESSION PATH */
int cmd_path_add(struct rnbd *r, int argc, char **argv)
{
	const struct session *session;
	struct model model;
	char *text;
	int ret;

	(void)argc;
	ret = resolve_path(argv[1], &text);
	if (ret)
		return ret;
	ret = need_session(r, argv[0], &model, &session);
	if (!ret)
		ret = add_path(r, session, text);
	model_free(&model);
	free(text);
	return ret;
}

/* Print how to add a path again that was deleted, but could not be added. */
static void print_add(const char *session, const char *text)
{
	fputs("  to try again: rnbd path add ", stderr);
	print_quoted(stderr, session);
	fputc(' ', stderr);
	print_quoted(stderr, text);
	fputc('\n', stderr);
}

static int readd(const struct rnbd *r, const struct path *path)
{
	char *text;
	int ret;

	if (!path->dst_addr)
		return report_not_found("the path %s is gone", path->name);
	text = path_text(path);
	ret = act(r, &delete, path);
	if (!ret) {
		ret = add_path(r, path->session, text);
		if (ret)
			print_add(path->session->name, text);
	}
	free(text);
	return ret;
}

/* Arguments: [SESSION] PATH. Deletes the path, then adds it again. */
int cmd_path_readd(struct rnbd *r, int argc, char **argv)
{
	const struct path *path;
	struct model model;
	int ret;

	ret = need_model(r, &model);
	if (!ret)
		ret = find_path(&model, argc > 1 ? argv[0] : NULL, argv[argc - 1], &path);
	if (!ret)
		ret = readd(r, path);
	model_free(&model);
	return ret;
}
