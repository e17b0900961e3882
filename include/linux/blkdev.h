/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What older kernels lack in <linux/blkdev.h>.
 */
#ifndef COMPAT_LINUX_BLKDEV_H
#define COMPAT_LINUX_BLKDEV_H

#include_next <linux/blkdev.h>
#include <linux/file.h>

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

/*
 * A block device that is opened for a holder, who may open it again while nobody else may. It is a
 * file since there is bdev_file_open_by_dev().
 */
struct bdev_claim;

#ifdef COMPAT_BDEV_FILE
#define COMPAT_CLAIM_MODE	(FMODE_READ | FMODE_WRITE | FMODE_EXCL)

static inline struct bdev_claim *compat_bdev_claim(struct block_device *bdev, void *holder)
{
	return (void *)blkdev_get_by_dev(bdev->bd_dev, COMPAT_CLAIM_MODE, holder);
}

static inline void compat_bdev_unclaim(struct bdev_claim *claim)
{
	blkdev_put((void *)claim, COMPAT_CLAIM_MODE);
}
#else
static inline struct bdev_claim *compat_bdev_claim(struct block_device *bdev, void *holder)
{
	return (void *)bdev_file_open_by_dev(bdev->bd_dev, BLK_OPEN_READ | BLK_OPEN_WRITE,
					     holder, NULL);
}

static inline void compat_bdev_unclaim(struct bdev_claim *claim)
{
	__fput_sync((void *)claim);
}
#endif

#endif /* COMPAT_LINUX_BLKDEV_H */
