/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that older kernels lack in <linux/blkdev.h> */
#ifndef COMPAT_LINUX_BLKDEV_H
#define COMPAT_LINUX_BLKDEV_H

#include_next <linux/blkdev.h>
#include <linux/file.h>
#include <linux/slab.h>

/* The old and the new name of the same status */
#ifndef BLK_STS_RESV_CONFLICT
#define BLK_STS_RESV_CONFLICT	BLK_STS_NEXUS
#endif

/*
 * Before block_device_operations.getgeo() had a disk as its argument, it had a block device. This
 * macro turns the driver's definition into two functions: one with a disk, and a wrapper with a
 * block device that calls it.
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

/* Before 6.5: release() has the mode of the file as a second argument. */
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

/* Before 7.1: only bdev_nonrot() exists, which returns the opposite. */
#ifdef COMPAT_BDEV_ROT
static inline bool bdev_rot(struct block_device *bdev)
{
	return !bdev_nonrot(bdev);
}
#endif

/*
 * Before 6.9: no file represents an open block device. What the driver gets as a file is a marked
 * pointer to these data, and only for the functions below.
 */
#ifdef COMPAT_BDEV_FILE
struct compat_bdev {
	struct block_device *bdev;
	fmode_t mode;
};

#define COMPAT_BDEV_MARK	1UL

#ifndef BLK_OPEN_READ
#define BLK_OPEN_READ	FMODE_READ
#define BLK_OPEN_WRITE	FMODE_WRITE
#endif

/* Returns NULL for a real file. */
static inline struct compat_bdev *compat_bdev_of(struct file *file)
{
	unsigned long value = (unsigned long)file;

	return value & COMPAT_BDEV_MARK ? (void *)(value & ~COMPAT_BDEV_MARK) : NULL;
}

static inline struct file *compat_bdev_open(dev_t dev, fmode_t mode, void *holder)
{
	struct compat_bdev *open = kmalloc(sizeof(*open), GFP_KERNEL);
	struct block_device *bdev;

	if (!open)
		return ERR_PTR(-ENOMEM);
	open->mode = mode | (holder ? FMODE_EXCL : 0);
	bdev = blkdev_get_by_dev(dev, open->mode, holder);
	if (IS_ERR(bdev)) {
		kfree(open);
		return ERR_CAST(bdev);
	}
	open->bdev = bdev;
	return (void *)((unsigned long)open | COMPAT_BDEV_MARK);
}

static inline void compat_fput_sync(struct file *file)
{
	struct compat_bdev *open = compat_bdev_of(file);

	if (!open) {
		__fput_sync(file);
		return;
	}
	blkdev_put(open->bdev, open->mode);
	kfree(open);
}

#define bdev_file_open_by_dev(dev, mode, holder, ops)	compat_bdev_open(dev, mode, holder)
#define file_bdev(file)					(compat_bdev_of(file)->bdev)
#define __fput_sync(file)				compat_fput_sync(file)
#endif

#endif /* COMPAT_LINUX_BLKDEV_H */
