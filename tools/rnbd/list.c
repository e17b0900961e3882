// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd list, dump: prints tables, or one JSON object
 *
 *	{ "client": { "devices": [...], "sessions": [...], "paths": [...] }, "server": {...} }
 */
#include <json-c/json.h>
#include <string.h>

#include "rnbd.h"

/* Kinds of objects to list */
enum kind { DEVICES = 1, SESSIONS = 2, PATHS = 4 };

static const struct column disk_columns[] = {
	{ "device", "DEVICE", TEXT },
	{ "session", "SESSION", TEXT },
	{ "mapping_path", "VOLUME", TEXT },
	{ "size", "SIZE", SIZE },
	{ "access_mode", "MODE", TEXT },
	{ "state", "STATE", TEXT },
};

static const struct column export_columns[] = {
	{ "name", "DISK", TEXT },
	{ "session", "SESSION", TEXT },
	{ "mapping_path", "VOLUME", TEXT },
	{ "size", "SIZE", SIZE },
	{ "access_mode", "MODE", TEXT },
};

static const struct column session_columns[] = {
	{ "name", "SESSION", TEXT },
	{ "state", "STATE", TEXT },
	{ "paths_connected", "UP", NUMBER },
	{ "paths", "PATHS", NUMBER },
	{ "devices", "DEVICES", NUMBER },
	{ "mp_policy", "POLICY", TEXT },
};

static const struct column path_columns[] = {
	{ "session", "SESSION", TEXT },
	{ "name", "PATH", TEXT },
	{ "hca_name", "HCA", TEXT },
	{ "hca_port", "PORT", NUMBER },
	{ "in_flight", "INFLIGHT", NUMBER },
	{ "reconnects", "RECONNECTS", NUMBER },
	{ "state", "STATE", TEXT },
};

static struct json_object *devices_array(const struct rnbd *r, const struct model *model,
					 enum side side)
{
	struct json_object *array = json_new_array();
	size_t i;

	for (i = 0; i < model->nr_devices; i++)
		if (model->devices[i].side == side)
			json_append(array, device_json(r, &model->devices[i]));
	return array;
}

static struct json_object *sessions_array(const struct model *model, enum side side)
{
	struct json_object *array = json_new_array();
	size_t i;

	for (i = 0; i < model->nr_sessions; i++)
		if (model->sessions[i].side == side)
			json_append(array, session_json(model, &model->sessions[i]));
	return array;
}

static struct json_object *paths_array(const struct model *model, enum side side)
{
	struct json_object *array = json_new_array();
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++)
		for (j = 0; model->sessions[i].side == side && j < model->sessions[i].nr_paths; j++)
			json_append(array, path_json(&model->sessions[i].paths[j]));
	return array;
}

static struct json_object *side_json(const struct rnbd *r, const struct model *model,
				     enum side side, unsigned int kinds)
{
	struct json_object *to = json_new();

	if (kinds & DEVICES)
		json_add(to, "devices", devices_array(r, model, side));
	if (kinds & SESSIONS)
		json_add(to, "sessions", sessions_array(model, side));
	if (kinds & PATHS)
		json_add(to, "paths", paths_array(model, side));
	return to;
}

static void print_kind(const struct rnbd *r, struct json_object *from, const char *key,
		       const struct column *columns, size_t nr)
{
	struct json_object *rows;

	if (json_object_object_get_ex(from, key, &rows))
		print_list(r, rows, columns, nr, key);
}

/* Print the tables of a side. */
static void print_side(const struct rnbd *r, struct json_object *from, enum side side)
{
	if (side == CLIENT)
		print_kind(r, from, "devices", disk_columns, ARRAY_SIZE(disk_columns));
	else
		print_kind(r, from, "devices", export_columns, ARRAY_SIZE(export_columns));
	print_kind(r, from, "sessions", session_columns, ARRAY_SIZE(session_columns));
	print_kind(r, from, "paths", path_columns, ARRAY_SIZE(path_columns));
}

static int list(const struct rnbd *r, unsigned int kinds)
{
	struct json_object *all = json_new(), *of_side;
	struct model model;
	enum side side;
	int ret;

	ret = need_model(r, &model);
	for (side = CLIENT; side < NR_SIDES && !ret; side++) {
		if (!model.loaded[side])
			continue;
		of_side = side_json(r, &model, side, kinds);
		json_add(all, side_name(side), of_side);
		if (r->json)
			continue;
		if (model.loaded[CLIENT] && model.loaded[SERVER] && !r->no_headings)
			printf("%s%s:\n", side == SERVER ? "\n" : "", side_name(side));
		print_side(r, of_side, side);
	}
	if (r->json && !ret)
		json_print(all);
	json_object_put(all);
	model_free(&model);
	return ret;
}

int cmd_list_devices(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, DEVICES);
}

int cmd_list_sessions(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, SESSIONS);
}

int cmd_list_paths(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, PATHS);
}

int cmd_dump(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, DEVICES | SESSIONS | PATHS);
}

int cmd_list(struct rnbd *r, int argc, char **argv)
{
	static const struct {
		const char *word;
		unsigned int kinds;
	} words[] = {
		{ "devices", DEVICES }, { "sessions", SESSIONS }, { "paths", PATHS },
		{ "all", DEVICES | SESSIONS | PATHS },
	};
	size_t i;

	if (!argc)
		return list(r, DEVICES);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(argv[0], words[i].word))
			return list(r, words[i].kinds);
	return report_usage("list what? devices, sessions, paths or all, not '%s'", argv[0]);
}
