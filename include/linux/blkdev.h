/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What older kernels lack in <linux/blkdev.h>.
 */
#ifndef COMPAT_LINUX_BLKDEV_H
#define COMPAT_LINUX_BLKDEV_H

#include_next <linux/blkdev.h>

/* It has had two names for the same number. */
#ifndef BLK_STS_RESV_CONFLICT
#define BLK_STS_RESV_CONFLICT	BLK_STS_NEXUS
#endif

/*
 * Before struct block_device_operations.getgeo took a disk, it took a block device. This
 * makes two functions of the driver's definition: one for a disk, and one that calls it.
 */
#ifdef COMPAT_GETGEO_BDEV
#define COMPAT_GETGEO(name, disk, geo)					\
compat_##name(struct gendisk *, struct hd_geometry *);			\
static int name(struct block_device *bdev, struct hd_geometry *geometry) \
{									\
	return compat_##name(bdev->bd_disk, geometry);			\
}									\
static int compat_##name(disk, geo)

#define rnbd_clt_getgeo(disk, geo)	COMPAT_GETGEO(rnbd_clt_getgeo, disk, geo)
#endif

#endif /* COMPAT_LINUX_BLKDEV_H */
