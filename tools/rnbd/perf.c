// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd perf: reads from a device for some seconds, with one thread for each read in flight. Never
 * writes.
 */
#include <json-c/json.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

/* Parameters, shared by all threads, which don't change them */
struct load {
	const struct rnbd *r;
	struct disk disk;
	long long blocks;
	double until;
};

/* State of a thread */
struct reader {
	const struct load *load;
	pthread_t thread;
	u64 random, next;
	struct histogram latency;
	double max_us;
	int err;
};

/* xorshift64; the result is never 0. */
static u64 next_random(struct reader *reader)
{
	u64 x = reader->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	reader->random = x;
	return x;
}

static u64 next_block(struct reader *reader)
{
	const struct load *load = reader->load;

	if (!load->r->sequential)
		return next_random(reader) % load->blocks;
	return reader->next++ % load->blocks;
}

static void *read_on(void *arg)
{
	struct reader *reader = arg;
	const struct load *load = reader->load;
	long size = load->r->block_size;
	void *buf = disk_buffer(size);
	double us;

	while (now() < load->until && !stopped()) {
		us = disk_read_us(&load->disk, buf, size, next_block(reader) * size);
		if (us < 0) {
			reader->err = -us;
			break;
		}
		histogram_count(&reader->latency, us);
		reader->max_us = fmax(reader->max_us, us);
	}
	free(buf);
	return NULL;
}

/* Start the threads. Sequential readers begin evenly spread. Returns the number of threads. */
static long start(const struct load *load, struct reader *readers)
{
	struct reader *reader;
	long i;

	for (i = 0; i < load->r->depth; i++) {
		reader = &readers[i];
		reader->load = load;
		reader->random = 0x9e3779b97f4a7c15ull * (i + 1);
		reader->next = load->blocks / load->r->depth * i;
		histogram_init(&reader->latency);
		if (pthread_create(&reader->thread, NULL, read_on, reader))
			break;
	}
	return i;
}

/* Wait for the threads, and add their results to the first one. */
static void join(struct reader *readers, long nr)
{
	long i;

	for (i = 0; i < nr; i++) {
		pthread_join(readers[i].thread, NULL);
		if (!i)
			continue;
		histogram_add(&readers->latency, &readers[i].latency);
		readers->max_us = fmax(readers->max_us, readers[i].max_us);
		if (readers[i].err)
			readers->err = readers[i].err;
	}
}

static struct json_object *result_json(const struct load *load, const struct reader *all,
				       double seconds)
{
	struct json_object *to = json_new();
	double reads = histogram_total(&all->latency);

	json_add_string(to, "device", load->disk.path);
	json_add_string(to, "pattern", load->r->sequential ? "sequential" : "random");
	json_add_int(to, "block_size", load->r->block_size);
	json_add_int(to, "depth", load->r->depth);
	json_add_double(to, "seconds", seconds);
	json_add_double(to, "iops", reads / seconds);
	json_add_double(to, "bytes_s", reads * load->r->block_size / seconds);
	json_add_latency(to, "latency_us", &all->latency, NAN);
	json_add_double(to, "max_us", reads ? all->max_us : NAN);
	json_add_string(to, "error", all->err ? strerror(all->err) : NULL);
	return to;
}

static void print_result(const struct load *load, struct json_object *result)
{
	static const struct column columns[] = {
		{ "iops", "IOPS", RATE }, { "bytes_s", "B/s", SIZE },
		{ "latency_us.mean", "MEAN", USECS }, { "latency_us.p50", "P50", USECS },
		{ "latency_us.p99", "P99", USECS }, { "latency_us.p99_9", "P99.9", USECS },
		{ "max_us", "MAX", USECS },
	};
	struct json_object *rows = json_new_array();

	printf("%s: %s reads of %ld bytes, %ld at a time\n", load->disk.path,
	       load->r->sequential ? "sequential" : "random", load->r->block_size, load->r->depth);
	json_append(rows, json_object_get(result));
	print_table(load->r, rows, columns, ARRAY_SIZE(columns));
	json_object_put(rows);
}

static int run(struct load *load)
{
	struct reader *readers = xcalloc(load->r->depth, sizeof(*readers));
	struct json_object *result;
	double from = now();
	int ret = RNBD_OK;
	long nr;

	stop_on_signals();
	load->until = from + load->r->seconds;
	progress_begin(load->disk.path, load->r->seconds);
	nr = start(load, readers);
	join(readers, nr);
	progress_end();
	if (nr < load->r->depth) {
		ret = report_failed("can't start %ld threads", load->r->depth);
	} else {
		result = result_json(load, readers, now() - from);
		if (load->r->json)
			json_print(result);
		else
			print_result(load, result);
		json_object_put(result);
	}
	if (readers->err)
		ret = report_failed("a read of %s failed: %s", load->disk.path,
				    strerror(readers->err));
	free(readers);
	return ret;
}

/* Arguments: DEVICE */
int cmd_perf(struct rnbd *r, int argc, char **argv)
{
	struct load load = { .r = r };
	const struct device *dev;
	struct model model;
	int ret;

	(void)argc;
	ret = need_model(r, &model);
	if (!ret)
		ret = find_device(&model, argv[0], NULL, &dev);
	if (!ret && dev->state && strcmp(dev->state, "open"))
		ret = report_failed("%s is %s; see rnbd health", dev->name, dev->state);
	if (!ret)
		ret = disk_open(r, dev->name, &load.disk);
	model_free(&model);
	if (ret)
		return ret;
	load.blocks = load.disk.size / r->block_size;
	if (load.blocks)
		ret = run(&load);
	else
		ret = report_failed("%s has less than %ld bytes", load.disk.path, r->block_size);
	disk_close(&load.disk);
	return ret;
}
