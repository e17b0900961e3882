// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd map, unmap, remap, resize, close: operations on devices
 */
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "volumes.h"

/* Longest time to wait for udev to close a disk */
#define UDEV_SECONDS 2

/*
 * A line for map_device, to which words are added, and the volume that it describes. @first and
 * @server: the first path, as it was typed and in the kernel's format
 */
struct line {
	char *text;
	struct volume volume;
	const char *first;
	char *server;
};

static int add_option(struct line *line, enum volume_option option, const char *value)
{
	if (line->volume.options[option])
		return report_usage("%s is given twice", volume_option_name(option));
	line->volume.options[option] = xstrdup(value);
	add_pair(&line->text, volume_option_name(option), value);
	return RNBD_OK;
}

/* Add NAME=VALUE: an option of map_device. */
static int add_assignment(struct line *line, const char *word)
{
	enum volume_option option;
	const char *value;
	int ret;

	ret = report_error(option_parse(word, 0, &option, &value));
	return ret ? ret : add_option(line, option, value);
}

/* Check for NAME=VALUE. Names of interfaces in IPv6 addresses may have a "=", too. */
static bool is_assignment(const char *word)
{
	return word[strcspn(word, "=:")] == '=';
}

/* Add a path. The line keeps the first one. */
static int add_path(struct line *line, const char *word)
{
	char *path;
	int ret = resolve_path(word, &path);

	if (ret)
		return ret;
	add_pair(&line->text, "path", path);
	volume_add_path(&line->volume, path);
	if (!line->first) {
		line->first = word;
		line->server = xstrdup(path);
	}
	free(path);
	return RNBD_OK;
}

/* Add a word after the device and the session: an option of map_device, a mode, or a path. */
static int add_word(struct line *line, const char *word)
{
	if (is_assignment(word) || is_option(word))
		return add_assignment(line, word);
	if (has_word(ACCESS_MODES, word))
		return add_option(line, ACCESS_MODE, word);
	if (!strcmp(word, "from"))
		return report_usage("from SESSION comes right after the volume");
	return add_path(line, word);
}

static bool has_blank(const char *text)
{
	return strpbrk(text, " \t\n\r\f\v") || !*text;
}

/*
 * Choose the session of a line that names none. The paths of a session that exists are not those of
 * the line: --save keeps them as they are.
 */
static int choose_session(const struct rnbd *r, struct line *line)
{
	bool joined;
	int ret;

	if (!line->first)
		return report_usage("map %s: add from SESSION, or a path to the server",
				    line->volume.device);
	ret = session_for(r, line->first, line->server, &line->volume.session, &joined);
	if (!ret && joined) {
		free(line->volume.options[PATHS]);
		line->volume.options[PATHS] = NULL;
	}
	return ret;
}

/* Convert the arguments: DEVICE [from SESSION] WORD... */
static int make_line(const struct rnbd *r, struct line *line, int argc, char **argv)
{
	bool named = argc > 1 && !strcmp(argv[1], "from");
	int i, ret = RNBD_OK;
	char *whole;

	if (named && argc < 3)
		return report_usage("map DEVICE from SESSION: the session is missing");
	for (i = 0; i < argc; i++)
		if (has_blank(argv[i]))
			return report_usage("'%s': map_device takes no blanks in names", argv[i]);
	line->volume.device = xstrdup(argv[0]);
	add_pair(&line->text, "device_path", argv[0]);
	for (i = named ? 3 : 1; i < argc && !ret; i++)
		ret = add_word(line, argv[i]);
	if (!ret && named)
		line->volume.session = xstrdup(argv[2]);
	else if (!ret)
		ret = choose_session(r, line);
	if (ret)
		return ret;
	whole = xasprintf("sessname=%s %s", line->volume.session, line->text);
	free(line->text);
	line->text = whole;
	return RNBD_OK;
}

/* Report the disk of a new mapping. If it is one of many, @rows gets it, or its name is printed. */
int report_mapped(const struct rnbd *r, const char *path, const char *session,
		  struct json_object *rows)
{
	const struct device *dev;
	struct json_object *object;
	struct model model;
	char *clean_path = text_clean(xstrdup(path)), *clean_session = text_clean(xstrdup(session));
	int ret;

	model_read(r, &model);
	ret = find_device(&model, clean_path, clean_session, &dev);
	if (!ret && r->json) {
		object = device_json(r, dev);
		if (rows)
			json_append(rows, json_object_get(object));
		else
			json_print(object);
		json_object_put(object);
	} else if (!ret) {
		printf("%s/%s%s%s\n", r->dev, dev->name, rows ? " " : "",
		       rows ? clean_path : "");
	}
	free(clean_path);
	free(clean_session);
	model_free(&model);
	return ret;
}

/*
 * Map a device. With --save it may be mapped already, and only its line be missing; with --all,
 * some of the volumes may be mapped already.
 */
static int map_line(const struct rnbd *r, const struct line *line)
{
	char *doing = xasprintf("map %s from %s", line->volume.device, line->volume.session);
	int ret = sysfs_set_unless(r, doing, CLIENT_CTL, "map_device", line->text,
				   r->save || r->all ? EEXIST : 0);

	free(doing);
	return ret;
}

static int save_mapped(const struct rnbd *r, struct volume *volume)
{
	int ret = volumes_save(r, volume, true);

	if (!ret)
		announce_disk(r, volume->session, volume->device);
	if (!ret || r->dry_run)
		return ret;
	return report_as(ret, "%s is mapped, but not saved", volume->device);
}

/*
 * Map DEVICE from SESSION WORD... With --save, a line that can't be saved is refused before
 * anything is mapped. The new disk is reported, except with --all.
 */
int map_words(const struct rnbd *r, int argc, char **argv)
{
	struct line line = { 0 };
	int ret;

	ret = make_line(r, &line, argc, argv);
	if (ret == RNBD_NOT_FOUND && r->save && !r->save_name)
		fprintf(stderr, "  if that is the name of the volume: --save=NAME\n");
	if (!ret && !sysfs_exists(r, CLIENT_CTL))
		ret = report_no_module(r, CLIENT);
	if (!ret && r->save)
		ret = volumes_save(r, &line.volume, false);
	if (!ret)
		ret = map_line(r, &line);
	if (!ret && !r->dry_run && !r->all)
		ret = report_mapped(r, argv[0], line.volume.session, NULL);
	if (!ret && r->save)
		ret = save_mapped(r, &line.volume);
	free(line.server);
	free(line.text);
	volume_free(&line.volume);
	return ret;
}

int cmd_map(struct rnbd *r, int argc, char **argv)
{
	return r->all ? map_all(r, argc, argv) : map_words(r, argc, argv);
}

/* Write @text to an attribute of the device @name. */
static int set_device(const struct rnbd *r, const char *verb, const char *name,
		      const char *session, const char *attribute, const char *text)
{
	const struct device *dev;
	struct model model;
	char *doing;
	int ret;

	ret = need_model(r, &model);
	if (!ret)
		ret = find_device(&model, name, session, &dev);
	if (!ret) {
		doing = xasprintf("%s %s", verb, name);
		ret = sysfs_set(r, doing, dev->dir, attribute, text);
		free(doing);
	}
	model_free(&model);
	return ret;
}

static bool take_word(int *argc, char **argv, const char *word)
{
	if (*argc < 2 || strcmp(argv[*argc - 1], word))
		return false;
	--*argc;
	return true;
}

/* Unmap once. Returns the errno, which is reported unless it is @quiet; sets the exit code. */
int try_unmap(const struct rnbd *r, const struct device *dev, const char *how, int quiet,
	      int *code)
{
	char *doing = xasprintf("unmap %s", dev->name);
	int err = sysfs_try(r, doing, dev->dir, "unmap_device", how, quiet, code);

	free(doing);
	return err;
}

/*
 * Unmap a device. When a disk is closed after a write, udev opens it for a moment. So EBUSY is
 * reported only if it persists.
 */
int unmap_device(const struct rnbd *r, const struct device *dev, const char *how)
{
	double end = now() + UDEV_SECONDS;
	int code;

	do {
		if (try_unmap(r, dev, how, EBUSY, &code) != EBUSY)
			return code;
		nap(0.1);
	} while (now() < end);
	try_unmap(r, dev, how, 0, &code);
	return code;
}

/* Unmap a device. With --save, the volume's line is removed last. */
static int unmap_saved(const struct rnbd *r, const struct device *dev, const char *how)
{
	int ret = r->save ? volumes_unsave(r, dev, false) : RNBD_OK;

	if (!ret)
		ret = unmap_device(r, dev, how);
	if (ret || !r->save)
		return ret;
	ret = volumes_unsave(r, dev, true);
	if (!ret || r->dry_run)
		return ret;
	return report_as(ret, "%s is unmapped, its line is still there", dev->name);
}

/* Arguments: DEVICE [from SESSION] [force] */
int cmd_unmap(struct rnbd *r, int argc, char **argv)
{
	bool force = take_word(&argc, argv, "force");
	const char *session = NULL;
	const struct device *dev;
	struct model model;
	int ret;

	if (argc == 3 && !strcmp(argv[1], "from"))
		session = argv[2];
	if ((argc != 1 && !session) || r->save_name)
		return report_usage("unmap DEVICE [from SESSION] [force] [--save]");
	ret = need_model(r, &model);
	if (!ret && r->save && !has_device(&model, argv[0], session)) {
		ret = volumes_forget(r, argv[0], session);
	} else if (!ret) {
		ret = find_device(&model, argv[0], session, &dev);
		if (!ret)
			ret = unmap_saved(r, dev, force ? "force" : "normal");
	}
	model_free(&model);
	return ret;
}

int cmd_remap(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return set_device(r, "remap", argv[0], NULL, "remap_device", "1");
}

/* Check that the size is not smaller, unless @force, and not larger than on the server. */
static int check_size(const struct device *dev, long long size, bool force)
{
	if (size && size < dev->size && !force)
		return report_usage("that makes %s smaller: shrink what is on it, then add force",
				    dev->name);
	if (dev->server_size >= 0 && size > dev->server_size)
		return report_usage("%s has %llds on the server; once it has more, resize to 0",
				    dev->name, dev->server_size / SECTOR);
	return RNBD_OK;
}

static int may_resize(const struct rnbd *r, const char *name, long long size, bool force)
{
	const struct device *dev;
	struct model model;
	int ret;

	ret = need_model(r, &model);
	if (!ret)
		ret = find_device(&model, name, NULL, &dev);
	if (!ret)
		ret = check_size(dev, size, force);
	model_free(&model);
	return ret;
}

/* Parse a size in whole sectors. The unit may be a separate word. */
static bool take_size(int argc, char **argv, long long *size)
{
	char *text = xasprintf("%s%s", argv[0], argc > 1 ? argv[1] : "");
	bool is = parse_size(text, size) && !(*size % SECTOR) &&
		  (argc < 2 || isalpha((unsigned char)*argv[1]));

	free(text);
	return is;
}

/* Arguments: DEVICE SIZE [UNIT] [force]. A size of 0 means the size on the server. */
int cmd_resize(struct rnbd *r, int argc, char **argv)
{
	bool force = take_word(&argc, argv, "force");
	long long size;
	char *text;
	int ret;

	if (argc < 2 || argc > 3)
		return report_usage("resize DEVICE SIZE [UNIT] [force]");
	if (!take_size(argc - 1, argv + 1, &size))
		return report_usage("'%s' is no size: whole sectors in bytes, s, K, M, G, T or P",
				    argv[1]);
	ret = may_resize(r, argv[0], size, force);
	if (ret)
		return ret;
	text = xasprintf("%lld", size / SECTOR);
	ret = set_device(r, "resize", argv[0], NULL, "resize", text);
	free(text);
	return ret;
}

/* Arguments: DEVICE [SESSION]. On the server only. */
int cmd_close(struct rnbd *r, int argc, char **argv)
{
	return set_device(r, "close", argv[0], argc > 1 ? argv[1] : NULL, "force_close", "1");
}
