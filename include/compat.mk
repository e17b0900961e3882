# SPDX-License-Identifier: GPL-2.0
# Included by kbuild Makefiles: puts the headers in this folder, which define what an older kernel
# lacks, before the kernel's own headers.

# Detect properties of the kernel that the preprocessor can't see: define COMPAT_$(1) if a line of
# <linux/$(2)> matches $(3), or if none does.
compat = $(shell grep -qs '$(3)' $(srctree)/include/linux/$(2) && echo -DCOMPAT_$(1))
compat_no = $(shell grep -qs '$(3)' $(srctree)/include/linux/$(2) || echo -DCOMPAT_$(1))

LINUXINCLUDE := -I$(abspath $(dir $(lastword $(MAKEFILE_LIST)))) $(LINUXINCLUDE) \
	$(call compat,SHOULD_MERGE,blk-mq.h,BLK_MQ_F_SHOULD_MERGE) \
	$(call compat,FREEZE_VOID,blk-mq.h,void blk_mq_freeze_queue.struct) \
	$(call compat,MAP_SG_QUEUE,blk-mq.h,int blk_rq_map_sg.struct request_queue) \
	$(call compat,MAP_KERN_QUEUE,blk-mq.h,int blk_rq_map_kern.struct request_queue) \
	$(call compat,RQ_IOPRIO,blk-mq.h,^[[:space:]]unsigned short ioprio;) \
	$(call compat,GETGEO_BDEV,blkdev.h,getgeo..struct block_device) \
	$(call compat,CLASS_NS_DEV,device/class.h,namespace..struct device) \
	$(call compat,CLASS_NS_VOID,device/class.h,const void ...namespace) \
	$(call compat,RELEASE_MODE,blkdev.h,release.*gendisk.*fmode_t) \
	$(call compat_no,BDEV_ROT,blkdev.h,bool bdev_rot) \
	$(call compat_no,BDEV_FILE,blkdev.h,bdev_file_open_by_dev) \
	$(call compat,EXPORT_NS_TOKEN,export.h,__stringify(DEFAULT_SYMBOL_NAMESPACE)) \
	$(call compat,IMPORT_NS_TOKEN,module.h,import_ns.*__stringify) \
	$(call compat_no,DFL_WQ,workqueue.h,system_dfl_wq) \
	$(call compat_no,ASM_UNALIGNED,unaligned.h,get_unaligned) \
	$(if $(filter 6.1,$(VERSION).$(PATCHLEVEL)),\
		$(shell [ $(SUBLEVEL) -ge 168 ] || echo -DCOMPAT_DESTROY_PUTS)) \
	$(if $(filter 5.% 6.0 6.1 6.2 6.3,$(VERSION).$(PATCHLEVEL)),-DCOMPAT_RXE_TASKLET)
