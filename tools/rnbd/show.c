// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd show: all about one device, session or path
 */
#include <json-c/json.h>

#include "rnbd.h"

static void show(const struct rnbd *r, const struct model *model, const struct found *found)
{
	struct json_object *object;

	if (found->device)
		object = device_json(r, found->device);
	else if (found->session)
		object = session_json(model, found->session);
	else
		object = path_json(found->path);
	if (r->json)
		json_print(object);
	else
		print_members(object);
	json_object_put(object);
}

enum kind { ANY, DEVICE, SESSION, PATH };

static int find(const struct model *model, enum kind of, int argc, char **argv,
		struct found *found)
{
	const char *first = argc > 1 ? argv[0] : NULL, *name = argv[argc - 1];

	switch (of) {
	case DEVICE:
		return find_device(model, name, NULL, &found->device);
	case SESSION:
		return find_session(model, name, &found->session);
	case PATH:
		return find_path(model, first, name, &found->path);
	default:
		return find_any(model, name, found);
	}
}

static int show_kind(const struct rnbd *r, enum kind of, int argc, char **argv)
{
	struct found found = { 0 };
	struct model model;
	int ret;

	model_read(r, &model);
	ret = need_module(r, &model);
	if (!ret)
		ret = find(&model, of, argc, argv, &found);
	if (!ret)
		show(r, &model, &found);
	model_free(&model);
	return ret;
}

int cmd_show(struct rnbd *r, int argc, char **argv)
{
	return show_kind(r, ANY, argc, argv);
}

int cmd_show_device(struct rnbd *r, int argc, char **argv)
{
	return show_kind(r, DEVICE, argc, argv);
}

int cmd_show_session(struct rnbd *r, int argc, char **argv)
{
	return show_kind(r, SESSION, argc, argv);
}

int cmd_show_path(struct rnbd *r, int argc, char **argv)
{
	return show_kind(r, PATH, argc, argv);
}
