/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of volumes, see rnbd-volumes(5)
 */
#ifndef RNBD_VOLUMES_H
#define RNBD_VOLUMES_H

#include <sys/stat.h>

#include "rnbd.h"

/*
 * Options of a volume for map_device. Those from PATHS on apply to the session, and those from
 * MP_POLICY on are settings, which can be changed while the session exists.
 */
enum volume_option {
	ACCESS_MODE,
	PATHS,
	DEST_PORT,
	NR_QUEUES,
	NR_POLL_QUEUES,
	QUEUE_DEPTH,
	KEY,
	MP_POLICY,
	SETTING_MAX_RECONNECTS,
	SETTING_RECONNECT_DELAY,
	SETTING_RECONNECT_DELAY_MAX,
	SETTING_HB_INTERVAL,
	SETTING_HB_MAX_MISSED,
	SETTING_FAILOVER_TIMEOUT,
	SETTING_UNFENCED_DELAY,
	NR_VOLUME_OPTIONS
};

#define FIRST_SESSION_OPTION PATHS
#define FIRST_SETTING MP_POLICY

/* Longest name of a volume: escaped, it must fit into the name of a unit. */
#define VOLUME_NAME_MAX 50

/* A line of the table */
struct volume {
	int line;
	char *name, *session, *device;
	/* NULL: not specified. Paths are separated by " path=", as in map_device. */
	char *options[NR_VOLUME_OPTIONS];
	bool noauto, nofail;
};

struct volumes {
	struct volume *all;
	size_t nr;
	/* Number of invalid lines, which are ignored */
	size_t wrong;
};

/* Reports an invalid line. @text has no newline. Where it is NULL, nothing is reported. */
typedef void volumes_report(void *arg, const char *text);

int volumes_read(const struct rnbd *r, const char *only, struct volumes *volumes,
		 volumes_report *report, void *arg);
int volumes_parse(const struct rnbd *r, FILE *file, const char *only, struct volumes *volumes,
		  volumes_report *report, void *arg);
char *volume_name_error(const char *name);
void volume_add_path(struct volume *volume, const char *path);
void volume_free(struct volume *volume);
void volumes_free(struct volumes *volumes);
const struct volume *volumes_find(const struct volumes *volumes, const char *name);
char *volumes_line(const struct volumes *volumes, const struct volume *volume);
const char *volumes_option(const struct volumes *volumes, const struct volume *volume,
			   enum volume_option option);

/* ---- volume.c ---- */

void announce_disk(const struct rnbd *r, const char *session, const char *device);

/* ---- session.c ---- */

char *session_name(const char *path);
int session_for(const struct rnbd *r, const char *typed, const char *path, char **session,
		bool *joined);

/* ---- table.c ---- */

/* The table's file */
struct table {
	char *path, *text;
	size_t len;
	/* Owner and permissions of the file */
	struct stat st;
	int lock;
};

int table_open(const struct rnbd *r, struct table *table);
void table_close(struct table *table);
int table_check(const struct rnbd *r, const struct table *table);
int table_write(const struct table *table);
void table_parse(const struct rnbd *r, const struct table *table, volumes_report *report,
		 void *arg, struct volumes *volumes);
int table_lines(const struct table *table);
void table_append(struct table *table, const char *line);
void table_remove(struct table *table, int line);

/* ---- save.c ---- */

int volumes_save(const struct rnbd *r, struct volume *volume, bool write);
int volumes_unsave(const struct rnbd *r, const struct device *dev, bool write);
int volumes_forget(const struct rnbd *r, const char *name, const char *session);

/* ---- options.c ---- */

const char *volume_option_name(enum volume_option option);
char *option_parse(const char *word, enum volume_option first, enum volume_option *option,
		   const char **value);
bool is_option(const char *name);
char *closest_word(const char *words, const char *word);
void options_print(enum volume_option first, enum volume_option end);

#endif /* RNBD_VOLUMES_H */
