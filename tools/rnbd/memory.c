// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the server that its clients take. It is in /sys/devices/rtrs_server/stats; in older
 * drivers, in parameters of the module.
 */
#include <unistd.h>

#include "rnbd.h"

/* Directories of the statistics; the first one that has them counts. */
static const char *const dirs[] = {
	"devices/rtrs_server/stats",
	"module/rtrs_server/parameters",
};

/* Read a statistic. Returns -1 if the driver does not have it. */
static long long read_statistic(const struct rnbd *r, const char *name)
{
	long long value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		if (sysfs_read_number(r, &value, "%s/%s", dirs[i], name))
			return value;
	return -1;
}

/* Get the limit of max_memory in bytes. 0 means half of the machine's memory. */
static long long read_limit(const struct rnbd *r)
{
	long long mib;

	if (!sysfs_read_number(r, &mib, "module/rtrs_server/parameters/max_memory"))
		return -1;
	if (mib)
		return mib << 20;
	return (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
}

void memory_read(const struct rnbd *r, struct memory *memory)
{
	memory->used = read_statistic(r, "memory_used");
	memory->waits = read_statistic(r, "memory_waits");
	memory->limit = read_limit(r);
}
