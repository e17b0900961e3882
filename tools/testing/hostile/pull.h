/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the cases of a hostile client with slots
 */
#ifndef HOSTILE_PULL_H
#define HOSTILE_PULL_H

#include "hostile.h"

#define BLOCK		4096
#define OLD		0xee	/* initial contents of the disk */

int open_rw(struct path *p, struct open_rsp *rsp);
bool is_all(const u8 *b, size_t len, u8 what);
int write_big(struct path *p, u32 id, u64 sector, u32 len);
int read_big(struct path *p, u32 id, u64 sector, u32 len);
int fill_disk(struct path *p, u32 id, u64 sector, u32 len, u8 with);

#endif
