// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: list of the volumes that a server lets this client map. A process opens
 * /dev/rnbd-discover, writes the options of a session, and reads the list. The list belongs to the
 * open file: users do not see each other's lists, and none outlives its file.
 *
 * The session is joined if it is open. Otherwise it exists only during the write. The server
 * sends the list in parts. Nothing in them is trusted, and neither is their number.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "rnbd-clt.h"

/* Room for a part of the list; each server can read and write that much at once. */
#define RNBD_CLT_LIST_ROOM	SZ_4K

/* Longest time that a server may take for all parts */
#define RNBD_CLT_LIST_TIME	(60 * HZ)

/* Longest line for a volume: name, size, access modes, UUID, blanks and NUL */
#define RNBD_CLT_LINE_LEN	(RNBD_NAME_LEN + 20 + 32 + UUID_STRING_LEN + 8)

/**
 * struct rnbd_clt_discovery - an open file
 * @lock: protects the following fields; held while the server is asked
 * @text: list from the last write, NULL before
 * @len: length of @text
 */
struct rnbd_clt_discovery {
	struct mutex lock; /* text, len */
	char *text;
	size_t len;
};

/* Check whether map_device accepts a name, which must be printable ASCII without blanks. */
static bool rnbd_clt_can_map(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (!isascii(name[i]) || !isgraph(name[i]))
			return false;
	}
	return true;
}

/*
 * Add a volume to a list, which is sorted by name. Of volumes of the same name, the last one
 * remains: the others were removed while the server sent the list.
 */
static void rnbd_clt_list_insert(struct rnbd_clt_list *list, struct rnbd_clt_volume *volume)
{
	unsigned int at = list->nr_volumes;
	int cmp = -1;

	while (at && (cmp = strcmp(list->volumes[at - 1]->name, volume->name)) > 0)
		at--;
	if (at && !cmp) {
		kfree(list->volumes[at - 1]);
		list->volumes[at - 1] = volume;
		return;
	}
	memmove(&list->volumes[at + 1], &list->volumes[at],
		(list->nr_volumes++ - at) * sizeof(*list->volumes));
	list->volumes[at] = volume;
}

static int rnbd_clt_list_add(struct rnbd_clt_list *list, const struct rnbd_list_entry *entry)
{
	struct rnbd_clt_volume *volume;

	if (list->nr++ == RNBD_CLT_LIST_MAX)
		return -E2BIG;
	if (!rnbd_clt_can_map(entry->name, entry->name_len))
		return 0;
	volume = kzalloc(struct_size(volume, name, entry->name_len + 1), GFP_KERNEL);
	if (!volume)
		return -ENOMEM;
	volume->nsectors = le64_to_cpu(entry->nsectors);
	volume->modes = entry->modes & (BIT(RNBD_ACCESS_MODES) - 1);
	import_uuid(&volume->uuid, entry->uuid);
	memcpy(volume->name, entry->name, entry->name_len);
	rnbd_clt_list_insert(list, volume);
	return 0;
}

/* Get the length of the entry at the beginning of @len bytes, 0 if the entry is malformed. */
static size_t rnbd_clt_entry_len(const struct rnbd_list_entry *entry, size_t len)
{
	size_t need;

	if (len < sizeof(*entry))
		return 0;
	need = rnbd_list_entry_len(entry->name_len);
	if (len < need || !entry->name_len || !rnbd_name_ok(entry->name, entry->name_len) ||
	    !rnbd_clt_nsectors_ok(le64_to_cpu(entry->nsectors)))
		return 0;
	return need;
}

/**
 * rnbd_clt_parse_list() - add the volumes in an answer to RNBD_MSG_LIST to a list
 * @list: list; its cursor, from the message, is replaced with the cursor of the answer
 * @buf: the answer, aligned to 8 bytes
 * @len: length of @buf
 *
 * Volumes that can't be mapped because of their names are left out.
 *
 * Return: 0, -EPROTO if the answer is malformed, -E2BIG if there are too many volumes, or -ENOMEM.
 */
VISIBLE_IF_KUNIT int rnbd_clt_parse_list(struct rnbd_clt_list *list, const void *buf, size_t len)
{
	const struct rnbd_msg_list_rsp *rsp = buf;
	u64 cursor = le64_to_cpu(rsp->cursor);
	size_t at = sizeof(*rsp), step;
	unsigned int nr;
	int err = 0;

	if (rsp->hdr.type != cpu_to_le16(RNBD_MSG_LIST_RSP) || (cursor && cursor <= list->cursor))
		return -EPROTO;
	for (nr = le16_to_cpu(rsp->nr); nr && !err; nr--) {
		step = rnbd_clt_entry_len(buf + at, len - at);
		if (!step)
			return -EPROTO;
		err = rnbd_clt_list_add(list, buf + at);
		at += step;
	}
	list->cursor = cursor;
	return err;
}

/* Print the names of access modes, separated by commas; - if there are none. */
static size_t rnbd_clt_print_modes(unsigned long modes, char *text, size_t room)
{
	unsigned int mode;
	size_t len = 0;

	for_each_set_bit(mode, &modes, RNBD_ACCESS_MODES)
		len += scnprintf(text + len, room - len, "%s%s", len ? "," : "",
				 rnbd_clt_access_names[mode]);
	return len ?: scnprintf(text, room, "-");
}

/**
 * rnbd_clt_print_volume() - print a line: name, size in sectors, access modes, UUID
 * @volume: volume
 * @text: buffer
 * @room: length of @text, at least RNBD_CLT_LINE_LEN for the whole line
 *
 * Return: length of the line.
 */
VISIBLE_IF_KUNIT size_t rnbd_clt_print_volume(const struct rnbd_clt_volume *volume, char *text,
					      size_t room)
{
	size_t len = scnprintf(text, room, "%s %llu ", volume->name, volume->nsectors);

	len += rnbd_clt_print_modes(volume->modes, text + len, room - len);
	if (uuid_is_null(&volume->uuid))
		return len + scnprintf(text + len, room - len, " -\n");
	return len + scnprintf(text + len, room - len, " %pU\n", &volume->uuid);
}

/* Print a list. Returns 0 or -ENOMEM. */
static int rnbd_clt_print_list(const struct rnbd_clt_list *list, char **text, size_t *len)
{
	unsigned int i;
	size_t room = 1;

	for (i = 0; i < list->nr_volumes; i++)
		room += strlen(list->volumes[i]->name) + RNBD_CLT_LINE_LEN - RNBD_NAME_LEN;
	*text = kvmalloc(room, GFP_KERNEL);
	if (!*text)
		return -ENOMEM;
	*len = 0;
	for (i = 0; i < list->nr_volumes; i++)
		*len += rnbd_clt_print_volume(list->volumes[i], *text + *len, room - *len);
	return 0;
}

/* Ask for one part of the list after the other. */
static int rnbd_clt_list_all(struct rnbd_clt_sess *sess, unsigned int generation,
			     struct rnbd_clt_list *list)
{
	struct rnbd_msg_list msg = { .hdr.type = cpu_to_le16(RNBD_MSG_LIST) };
	unsigned long end = jiffies + RNBD_CLT_LIST_TIME;
	void *rsp = kmalloc(RNBD_CLT_LIST_ROOM, GFP_KERNEL);
	int err;

	if (!rsp)
		return -ENOMEM;
	do {
		msg.cursor = cpu_to_le64(list->cursor);
		memset(rsp, 0, RNBD_CLT_LIST_ROOM);
		err = rnbd_clt_admin(sess, generation, &msg, sizeof(msg), rsp,
				     RNBD_CLT_LIST_ROOM) ?:
		      rnbd_clt_parse_list(list, rsp, RNBD_CLT_LIST_ROOM);
		if (!err && list->cursor && time_after(jiffies, end))
			err = -ETIMEDOUT;
		if (!err && list->cursor && signal_pending(current))
			err = -EINTR;
	} while (!err && list->cursor);
	kfree(rsp);
	return err;
}

static int rnbd_clt_list_volumes(const struct rnbd_clt_map_opts *opts, struct rnbd_clt_list *list)
{
	struct rnbd_clt_sess *sess;
	unsigned int generation;
	int err;

	sess = rnbd_clt_sess_get(opts);
	if (IS_ERR(sess))
		return PTR_ERR(sess);
	generation = READ_ONCE(sess->generation);
	err = rnbd_clt_sess_introduce(sess);
	if (!err && !(READ_ONCE(sess->features) & RNBD_FEATURE_VOLUMES))
		err = -EOPNOTSUPP;
	if (!err)
		err = rnbd_clt_list_all(sess, generation, list);
	if (err == -EOPNOTSUPP)
		pr_err("%s: the server can't list its volumes\n", opts->label);
	else if (err && err != -EINTR)
		pr_err("%s: can't list the server's volumes: %pe\n", opts->label, ERR_PTR(err));
	rnbd_clt_sess_leave(sess);
	rnbd_clt_sess_put(sess);
	return err;
}

/* Get the text with the volumes of a server, from kvmalloc(). */
static int rnbd_clt_discover(const struct rnbd_clt_map_opts *opts, char **text, size_t *len)
{
	struct rnbd_clt_list list = { };
	unsigned int i;
	int err;

	list.volumes = kvcalloc(RNBD_CLT_LIST_MAX, sizeof(*list.volumes), GFP_KERNEL);
	if (!list.volumes)
		return -ENOMEM;
	err = rnbd_clt_list_volumes(opts, &list) ?: rnbd_clt_print_list(&list, text, len);
	for (i = 0; i < list.nr_volumes; i++)
		kfree(list.volumes[i]);
	kvfree(list.volumes);
	return err;
}

static int rnbd_clt_discover_line(char *line, struct rnbd_clt_discovery *discovery)
{
	struct rnbd_clt_map_opts *opts = kvzalloc(sizeof(*opts), GFP_KERNEL);
	int err;

	if (!opts)
		return -ENOMEM;
	opts->net = current->nsproxy->net_ns;
	opts->discover = true;
	err = rnbd_clt_parse(line, opts);
	if (!err)
		err = rnbd_clt_discover(opts, &discovery->text, &discovery->len);
	kvfree(opts);
	return err;
}

static void rnbd_clt_discovery_clear(struct rnbd_clt_discovery *discovery)
{
	kvfree(discovery->text);
	discovery->text = NULL;
	discovery->len = 0;
}

static int rnbd_clt_discover_open(struct inode *inode, struct file *file)
{
	struct rnbd_clt_discovery *discovery = kzalloc(sizeof(*discovery), GFP_KERNEL);

	if (!discovery)
		return -ENOMEM;
	mutex_init(&discovery->lock);
	file->private_data = discovery;
	return 0;
}

static int rnbd_clt_discover_release(struct inode *inode, struct file *file)
{
	struct rnbd_clt_discovery *discovery = file->private_data;

	rnbd_clt_discovery_clear(discovery);
	mutex_destroy(&discovery->lock);
	kfree(discovery);
	return 0;
}

/* Replace the list of the file. The next read begins with the new list. */
static ssize_t rnbd_clt_discover_write(struct file *file, const char __user *buf, size_t count,
				       loff_t *pos)
{
	struct rnbd_clt_discovery *discovery = file->private_data;
	char *line;
	int err;

	if (count >= PAGE_SIZE)
		return -EINVAL;
	line = memdup_user_nul(buf, count);
	if (IS_ERR(line))
		return PTR_ERR(line);
	err = -EINVAL;
	if (strlen(line) != count)
		goto free_line;
	err = mutex_lock_interruptible(&discovery->lock);
	if (err)
		goto free_line;
	rnbd_clt_discovery_clear(discovery);
	err = rnbd_clt_discover_line(line, discovery);
	mutex_unlock(&discovery->lock);
	*pos = 0;
free_line:
	kfree(line);
	return err ?: count;
}

static ssize_t rnbd_clt_discover_read(struct file *file, char __user *buf, size_t count,
				      loff_t *pos)
{
	struct rnbd_clt_discovery *discovery = file->private_data;
	ssize_t ret = mutex_lock_interruptible(&discovery->lock);

	if (ret)
		return ret;
	ret = simple_read_from_buffer(buf, count, pos, discovery->text, discovery->len);
	mutex_unlock(&discovery->lock);
	return ret;
}

static const struct file_operations rnbd_clt_discover_fops = {
	.owner = THIS_MODULE,
	.open = rnbd_clt_discover_open,
	.release = rnbd_clt_discover_release,
	.write = rnbd_clt_discover_write,
	.read = rnbd_clt_discover_read,
	.llseek = default_llseek,
};

static struct miscdevice rnbd_clt_discover_dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rnbd-discover",
	.mode = 0600,
	.fops = &rnbd_clt_discover_fops,
};

/**
 * rnbd_clt_start_discovery() - let users list the volumes of servers
 *
 * Return: 0 or a negative errno.
 */
int rnbd_clt_start_discovery(void)
{
	return misc_register(&rnbd_clt_discover_dev);
}

/**
 * rnbd_clt_stop_discovery() - undo rnbd_clt_start_discovery()
 *
 * Context: process, may sleep; no file is open, since each holds a reference to the module.
 */
void rnbd_clt_stop_discovery(void)
{
	misc_deregister(&rnbd_clt_discover_dev);
}
