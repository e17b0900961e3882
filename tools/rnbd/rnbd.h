/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rnbd, a tool to map, list and monitor network block devices. model_read() reads sysfs into
 * a model of sessions, paths and devices, on which the commands operate. All text in the model
 * is clean, see text.c, except for the names of directories.
 */
#ifndef RNBD_H
#define RNBD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct json_object;
struct stat;

typedef __u64 u64;

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define SECTOR		512
#define CLIENT_CTL	"class/rnbd-client/ctl"
#define ACCESS_MODES	"ro rw migration handover"
#define __printf(a, b)	__attribute((format(printf, a, b)))

/* Exit codes. health uses the exit codes of monitoring plugins instead. */
enum {
	RNBD_OK,
	RNBD_FAILED,		/* the operation failed */
	RNBD_USAGE,		/* invalid command line */
	RNBD_NOT_FOUND,		/* no such device, session or path, or an ambiguous name */
	RNBD_NO_MODULE,
	RNBD_NO_PERMISSION,
};

#define RNBD_HEALTH_UNKNOWN 3

enum side { CLIENT, SERVER, NR_SIDES };

/* Options of the command line, and settings from the environment */
struct rnbd {
	/* Paths of sysfs, /dev, the kernel's log and tracefs, which tests replace */
	const char *sysfs, *dev, *kmsg, *tracefs;
	/* Paths of the table of volumes, and of the server's configuration file */
	const char *volumes, *server_conf;
	/* Path of the file that is locked while the table is changed */
	const char *lock;
	/* Sides to which the command applies */
	bool sides[NR_SIDES];
	bool help, json, verbose, bytes, dry_run, no_headings;
	bool prometheus, sequential, wait, save, all;
	/* Name of the volume to save; NULL: derived from the device */
	const char *save_name;
	double watch, interval, seconds;
	long count, depth, block_size, max_reconnects, slower_us;
	const char *client_log, *server_log, *record;
};

/* ---- histogram.c ---- */

#define HISTOGRAM_MAX 128

/* @count[n]: number of durations of at least @bound_us[n - 1] and less than @bound_us[n] */
struct histogram {
	unsigned int nr;	/* 0: no histogram */
	double bound_us[HISTOGRAM_MAX];
	u64 count[HISTOGRAM_MAX];
	bool has_sum;
	double sum_us;
};

enum direction { READ, WRITE, NR_DIRECTIONS };

struct latency {
	struct histogram of[NR_DIRECTIONS];
};

bool histogram_parse_heartbeat(struct histogram *h, const char *text);
bool histogram_parse_latency(struct latency *latency, char *text);
void histogram_add(struct histogram *to, const struct histogram *h);
void histogram_sub(struct histogram *from, const struct histogram *h);
void histogram_init(struct histogram *h);
void histogram_count(struct histogram *h, double us);
u64 histogram_total(const struct histogram *h);
double histogram_mean(const struct histogram *h);
double histogram_percentile(const struct histogram *h, double percent);

/* ---- model.c ---- */

#define NR_TICKS 4

struct io_stats {
	u64 reads, read_bytes, writes, written_bytes, inflight;
	u64 failed_over, reconnects, failed_reconnects;
	/* Only for disks: total milliseconds of reads, writes, discards and flushes */
	__u32 ticks_ms[NR_TICKS];
};

/* An attribute with a number, which some drivers lack */
struct number {
	const char *name;
	bool known;
	long long value;
};

enum setting {
	MAX_RECONNECT_ATTEMPTS, RECONNECT_DELAY_MS, RECONNECT_DELAY_MAX_MS, HB_INTERVAL_MS,
	HB_MAX_MISSED, FAILOVER_TIMEOUT, UNFENCED_DELAY_MS, FENCING, NR_SETTINGS
};

struct session;

struct path {
	const struct session *session;
	char *name;		/* SRC@DST */
	char *dir;		/* relative to sysfs; not cleaned */
	char *state, *src_addr, *dst_addr, *hca_name;
	long long hca_port;
	long long last_error;	/* last result of connecting, a negative errno or 0; client only */
	long long latency_ns;	/* round trip of the last heartbeat; -1: unknown */
	struct io_stats stats;
	struct histogram heartbeats;
	struct latency latency;
};

struct session {
	enum side side;
	char *name;
	char *dir;
	char *mp_policy;	/* client only, else NULL */
	struct number settings[NR_SETTINGS];
	struct path *paths;
	size_t nr_paths;
};

/* A disk of the client, or a disk or file that the server has opened for a session */
struct device {
	enum side side;
	char *name;		/* rnbd0; on the server, the name of the disk or file */
	char *dir;
	char *session, *mapping_path, *access_mode;
	char *state;		/* client only, else NULL */
	char *wwid;		/* client only; empty if the disk has none */
	char *uuid;		/* client only; empty if the device is no volume */
	bool read_only;
	long long size;		/* in bytes; -1: unknown */
	long long server_size;	/* size on the server, as known to the client; -1: unknown */
	struct io_stats stats;
	struct latency wait, disk;	/* server only */
};

struct model {
	bool loaded[NR_SIDES];
	struct session *sessions;
	size_t nr_sessions;
	struct device *devices;
	size_t nr_devices;
};

void model_read(const struct rnbd *r, struct model *model);
void model_free(struct model *model);
const char *side_name(enum side side);
char *path_text(const struct path *path);
bool path_connected(const struct path *path);
size_t paths_connected(const struct session *session);
const char *session_state(const struct session *session);
bool device_is_of(const struct device *dev, const struct session *session);
size_t session_devices(const struct model *model, const struct session *session);
const struct session *device_session(const struct model *model, const struct device *dev);
void stats_add(struct io_stats *to, const struct io_stats *stats);

/* ---- find.c ---- */

/* Result of find_any() or find_object(): one of these is set. */
struct found {
	const struct device *device;
	const struct session *session;
	const struct path *path;
};

int find_device(const struct model *model, const char *name, const char *session,
		const struct device **dev);
bool has_device(const struct model *model, const char *name, const char *session);
int find_session(const struct model *model, const char *name, const struct session **session);
int find_path(const struct model *model, const char *session, const char *name,
	      const struct path **path);
enum object { ANY, DEVICE, SESSION, PATH };

int find_object(const struct model *model, enum object of, int argc, char **argv,
		struct found *found);
int find_any(const struct model *model, const char *name, struct found *found);

/* ---- sysfs.c ---- */

char *sysfs_read(const struct rnbd *r, const char *fmt, ...)
	__printf(2, 3);
char *sysfs_read_all(const struct rnbd *r, const char *fmt, ...)
	__printf(2, 3);
bool sysfs_read_number(const struct rnbd *r, long long *value, const char *fmt, ...)
	__printf(3, 4);
bool sysfs_exists(const struct rnbd *r, const char *fmt, ...)
	__printf(2, 3);
char **list_dir(size_t *nr, const char *path);
char **sysfs_list(const struct rnbd *r, size_t *nr, const char *fmt, ...)
	__printf(3, 4);
char *sysfs_link_name(const struct rnbd *r, const char *fmt, ...)
	__printf(2, 3);
int sysfs_set(const struct rnbd *r, const char *doing, const char *dir, const char *attribute,
	      const char *text);
int sysfs_mkdir(const struct rnbd *r, const char *doing, const char *dir);
int sysfs_rmdir(const struct rnbd *r, const char *doing, const char *dir);
int sysfs_symlink(const struct rnbd *r, const char *doing, const char *target, const char *path);
int sysfs_unlink(const struct rnbd *r, const char *doing, const char *path);
int sysfs_try(const struct rnbd *r, const char *doing, const char *dir, const char *attribute,
	      const char *text, int quiet, int *code);
int sysfs_set_unless(const struct rnbd *r, const char *doing, const char *dir,
		     const char *attribute, const char *text, int fine);

/* ---- errors.c ---- */

/* The kernel's log, from kmsg_open() on */
struct kmsg {
	int fd;
};

extern int exit_usage, exit_failed;

void kmsg_open(const struct rnbd *r, struct kmsg *kmsg);
void kmsg_close(struct kmsg *kmsg);
int report_write(const struct rnbd *r, struct kmsg *kmsg, const char *doing, const char *file,
		 int err);
int report_no_module(const struct rnbd *r, enum side side);
int report_as(int code, const char *fmt, ...) __printf(2, 3);
#define report_usage(...)	report_as(exit_usage, __VA_ARGS__)
#define report_not_found(...)	report_as(RNBD_NOT_FOUND, __VA_ARGS__)
#define report_failed(...)	report_as(RNBD_FAILED, __VA_ARGS__)
int report_error(char *error);
int report_bad_path(const char *text);
int need_module(const struct rnbd *r, const struct model *model);
int need_model(const struct rnbd *r, struct model *model);

/* ---- json.c ---- */

struct json_object *device_json(const struct rnbd *r, const struct device *dev);
struct json_object *session_json(const struct model *model, const struct session *session);
struct json_object *path_json(const struct path *path);
void json_add(struct json_object *to, const char *key, struct json_object *value);
void json_add_string(struct json_object *to, const char *key, const char *value);
void json_add_int(struct json_object *to, const char *key, long long value);
void json_add_double(struct json_object *to, const char *key, double value);
void json_add_bool(struct json_object *to, const char *key, bool value);
void json_add_latency(struct json_object *to, const char *key, const struct histogram *h,
		      double mean_us);
struct json_object *json_new(void);
struct json_object *json_new_array(void);
struct json_object *json_new_string(const char *value);
void json_append(struct json_object *array, struct json_object *value);
void json_print(struct json_object *value);
void json_print_line(struct json_object *value);

/* ---- print.c ---- */

enum format { TEXT, NUMBER, SIZE, RATE, USECS, YES_NO };

/* @key can be the path of a nested member, such as "latency.p99". */
struct column {
	const char *key, *heading;
	enum format format;
};

#define CELL_MAX 512

void format_cell(const struct rnbd *r, char *text, struct json_object *row,
		 const struct column *column);
void print_table(const struct rnbd *r, struct json_object *rows, const struct column *columns,
		 size_t nr);
void print_list(const struct rnbd *r, struct json_object *rows, const struct column *columns,
		size_t nr, const char *what);
const char *cell_state(const struct column *column, const char *text);
bool has_escapes(int fd);
void print_members(struct json_object *object);
void format_size(const struct rnbd *r, char *text, size_t room, double bytes);
void format_usecs(char *text, size_t room, double us);

/* ---- util.c ---- */

void *xcalloc(size_t nr, size_t size);
void *xrealloc(void *p, size_t nr, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __printf(1, 2);
void add_pair(char **text, const char *key, const char *value);
double now(void);
void nap(double seconds);
bool parse_number(const char *text, long long min, long long max, long long *value);
bool parse_seconds(const char *text, double *seconds);
bool parse_size(const char *text, long long *bytes);
char *number_scopes(const char *text);
char *name_scopes(const char *text);
char *parse_address(const char *text);
char *parse_path(const char *text);
bool starts_with(const char *s, const char *with);

/* ---- text.c ---- */

char *text_clean(char *text);
size_t text_columns(const char *text);
void text_copy(char *to, size_t room, const char *text);
void text_clip(char *text, size_t columns);
const char *text_end(const char *text, size_t columns);
void print_quoted(FILE *to, const char *text);
bool is_word(const char *text);
bool has_part(const char *text, const char *part, char separator);
bool has_word(const char *words, const char *word);

/* ---- stat.c ---- */

struct sample {
	double at;
	struct model model;
};

void sample_take(const struct rnbd *r, struct sample *sample);
struct json_object *sample_rates(const struct sample *from, const struct sample *to);

/* ---- metrics.c ---- */

void print_metrics(const struct rnbd *r, const struct model *model, FILE *to);

/* ---- newfile.c ---- */

struct new_file {
	FILE *to;
	char *path, *temporary;
};

int new_file_open(struct new_file *file, const char *path, mode_t mode);
int new_file_own(struct new_file *file, const struct stat *st);
void new_file_drop(struct new_file *file);
int new_file_commit(struct new_file *file, bool durable);

/* ---- disk.c ---- */

struct disk {
	char *path;
	int fd;
	long long size;
};

int disk_open(const struct rnbd *r, const char *name, struct disk *disk);
void disk_close(struct disk *disk);
void *disk_buffer(size_t size);
double disk_read_us(const struct disk *disk, void *buf, size_t size, long long offset);

/* ---- driver.c ---- */

bool driver_is_foreign(const struct rnbd *r, const char *module);
int need_driver(const struct rnbd *r, const char *module);
char *driver_name(const struct rnbd *r, enum side side);

/* ---- memory.c ---- */

/* Memory of the server, in bytes, and the number of requests that had to wait; -1: unknown */
struct memory {
	long long used, limit, waits;
};

void memory_read(const struct rnbd *r, struct memory *memory);

/* ---- health.c ---- */

struct json_object *health_findings(const struct rnbd *r, const struct model *model, int *code);

/* ---- progress.c ---- */

void progress_begin(const char *doing, double seconds);
void progress_end(void);

/* ---- resolve.c ---- */

int resolve_path(const char *text, char **path);

/* ---- signals.c ---- */

void stop_on_signals(void);
bool stopped(void);

/* ---- systemd.c, generator.c ---- */

void notify_status(const char *fmt, ...) __printf(1, 2);
void notify_ready_within(const double *seconds);
bool notified_ready(void);
bool shutting_down(void);
void start_mounts(void);
int generate(struct rnbd *r, int argc, char **argv);

/* ---- map.c ---- */

int unmap_device(const struct rnbd *r, const struct device *dev, const char *how);
int try_unmap(const struct rnbd *r, const struct device *dev, const char *how, int quiet,
	      int *code);
int report_mapped(const struct rnbd *r, const char *path, const char *session,
		  struct json_object *rows);
int map_words(const struct rnbd *r, int argc, char **argv);

/* ---- discover.c ---- */

int map_all(const struct rnbd *r, int argc, char **argv);

/* ---- commands ---- */

int cmd_discover(struct rnbd *r, int argc, char **argv);
int cmd_map(struct rnbd *r, int argc, char **argv);
int cmd_unmap(struct rnbd *r, int argc, char **argv);
int cmd_remap(struct rnbd *r, int argc, char **argv);
int cmd_resize(struct rnbd *r, int argc, char **argv);
int cmd_close(struct rnbd *r, int argc, char **argv);
int cmd_list(struct rnbd *r, int argc, char **argv);
int cmd_list_devices(struct rnbd *r, int argc, char **argv);
int cmd_list_sessions(struct rnbd *r, int argc, char **argv);
int cmd_list_paths(struct rnbd *r, int argc, char **argv);
int cmd_dump(struct rnbd *r, int argc, char **argv);
int cmd_show(struct rnbd *r, int argc, char **argv);
int cmd_show_device(struct rnbd *r, int argc, char **argv);
int cmd_show_session(struct rnbd *r, int argc, char **argv);
int cmd_show_path(struct rnbd *r, int argc, char **argv);
int cmd_session_reconnect(struct rnbd *r, int argc, char **argv);
int cmd_session_disconnect(struct rnbd *r, int argc, char **argv);
int cmd_session_set(struct rnbd *r, int argc, char **argv);
int cmd_path_add(struct rnbd *r, int argc, char **argv);
int cmd_path_delete(struct rnbd *r, int argc, char **argv);
int cmd_path_readd(struct rnbd *r, int argc, char **argv);
int cmd_path_reconnect(struct rnbd *r, int argc, char **argv);
int cmd_path_disconnect(struct rnbd *r, int argc, char **argv);
int cmd_path_reset(struct rnbd *r, int argc, char **argv);
int cmd_recover(struct rnbd *r, int argc, char **argv);
int cmd_device_recover(struct rnbd *r, int argc, char **argv);
int cmd_session_recover(struct rnbd *r, int argc, char **argv);
int cmd_session_remap(struct rnbd *r, int argc, char **argv);
int cmd_path_recover(struct rnbd *r, int argc, char **argv);
int cmd_stat(struct rnbd *r, int argc, char **argv);
int cmd_top(struct rnbd *r, int argc, char **argv);
int cmd_ping(struct rnbd *r, int argc, char **argv);
int cmd_perf(struct rnbd *r, int argc, char **argv);
int cmd_report(struct rnbd *r, int argc, char **argv);
int cmd_metrics(struct rnbd *r, int argc, char **argv);
int cmd_health(struct rnbd *r, int argc, char **argv);
int cmd_volume_list(struct rnbd *r, int argc, char **argv);
int cmd_volume_check(struct rnbd *r, int argc, char **argv);
int cmd_volume_map(struct rnbd *r, int argc, char **argv);
int cmd_volume_name(struct rnbd *r, int argc, char **argv);
int cmd_volume_unmap(struct rnbd *r, int argc, char **argv);
int cmd_session_hurry(struct rnbd *r, int argc, char **argv);
int cmd_load(struct rnbd *r, int argc, char **argv);
int cmd_stop(struct rnbd *r, int argc, char **argv);
int cmd_unload(struct rnbd *r, int argc, char **argv);
int cmd_rules(struct rnbd *r, int argc, char **argv);
int cmd_policy(struct rnbd *r, int argc, char **argv);
int cmd_rules_check(struct rnbd *r, int argc, char **argv);
int cmd_rules_save(struct rnbd *r, int argc, char **argv);
int cmd_rules_clear(struct rnbd *r, int argc, char **argv);
int cmd_rules_exports(struct rnbd *r, int argc, char **argv);
int cmd_tenant_list(struct rnbd *r, int argc, char **argv);
int cmd_tenant_add(struct rnbd *r, int argc, char **argv);
int cmd_tenant_set(struct rnbd *r, int argc, char **argv);
int cmd_tenant_delete(struct rnbd *r, int argc, char **argv);
int cmd_host_list(struct rnbd *r, int argc, char **argv);
int cmd_host_add(struct rnbd *r, int argc, char **argv);
int cmd_host_set(struct rnbd *r, int argc, char **argv);
int cmd_host_delete(struct rnbd *r, int argc, char **argv);
int cmd_export_list(struct rnbd *r, int argc, char **argv);
int cmd_export_add(struct rnbd *r, int argc, char **argv);
int cmd_export_set(struct rnbd *r, int argc, char **argv);
int cmd_export_delete(struct rnbd *r, int argc, char **argv);
int cmd_trace(struct rnbd *r, int argc, char **argv);

#endif /* RNBD_H */
