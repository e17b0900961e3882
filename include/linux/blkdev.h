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

/* Before 6.5 release() has the mode of the file as a second argument. */
#ifdef COMPAT_RELEASE_MODE
#define COMPAT_RELEASE(name, disk)					\
compat_##name(struct gendisk *);					\
static void name(struct gendisk *gendisk, fmode_t mode)			\
{									\
	compat_##name(gendisk);						\
}									\
static void compat_##name(disk)

#define rnbd_clt_release(disk)	COMPAT_RELEASE(rnbd_clt_release, disk)
#endif

/* Before 7.1 the question was the opposite one. */
#ifdef COMPAT_BDEV_ROT
static inline bool bdev_rot(struct block_device *bdev)
{
	return !bdev_nonrot(bdev);
}
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

/* Open and close a disk, as that looks for partitions if it is marked so. */
static inline void compat_touch_disk(struct gendisk *disk)
{
	struct block_device *bdev = blkdev_get_by_dev(disk_devt(disk), FMODE_READ, NULL);

	if (!IS_ERR(bdev))
		blkdev_put(bdev, FMODE_READ);
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

static inline void compat_touch_disk(struct gendisk *disk)
{
	struct file *file = bdev_file_open_by_dev(disk_devt(disk), BLK_OPEN_READ, NULL, NULL);

	if (!IS_ERR(file))
		__fput_sync(file);
}
#endif

#endif /* COMPAT_LINUX_BLKDEV_H */
