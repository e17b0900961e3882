// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd show: prints all attributes of a device, session or path
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

static int show_kind(const struct rnbd *r, enum object of, int argc, char **argv)
{
	struct found found = { 0 };
	struct model model;
	int ret;

	ret = need_model(r, &model);
	if (!ret)
		ret = find_object(&model, of, argc, argv, &found);
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
