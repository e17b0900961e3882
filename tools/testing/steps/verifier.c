// SPDX-License-Identifier: GPL-2.0
/*
 * Writes blocks of a disk or a file, chosen at random, again and again, and knows the newest
 * generation of each. A block is read and compared before it is written again, and all are at
 * the end. So a block that is not the newest any more is noticed however long ago it was
 * written: when its turn comes, or at the end.
 *
 *	verifier FILE [OPTION...]
 *
 *	--bs=SIZE		of a block, default 4k; k and m as usual
 *	--blocks=NUMBER		default 16
 *	--offset=SIZE		where the first one begins, default 0
 *	--depth=NUMBER		of blocks that are read or written at the same time, default 4
 *	--fsync=NUMBER		of writes, after which there is an fsync(2)
 *	--poll			by polling, for FILE with polled queues
 *	--pause=MILLISECONDS	after each write
 *	--slowest=SECONDS	a read or write that takes longer is an error
 *
 * SIGINT ends it. The last line then begins with "ok: ", or tells what was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECTOR	512
#define WORDS	(SECTOR / sizeof(uint64_t))

struct block {
	uint64_t generation;	/* that was written last, 0: none */
	bool busy;
};

/* A block that is being read, then written */
struct io {
	unsigned int block;
	bool write;
	uint64_t *memory;
	uint64_t began;
};

static uint64_t bs = 4096, nr_blocks = 16, offset, depth = 4, sync_every, pause_ms, slowest_s;
static bool polls;

static int fd;
static struct io_uring ring;
static struct block *blocks;
static uint64_t *expected;	/* a block */
static uint64_t run;		/* tells our blocks from those of an earlier run */
static unsigned int in_flight, next_last;
static bool last, failed;
static volatile sig_atomic_t stop;

static uint64_t writes, reads, last_reads, slowest_ms;

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	exit(1);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static uint64_t place(unsigned int block) { return offset + block * bs; }

/* Each sector begins with these three numbers, which its other words depend on. */
static void fill(uint64_t *memory, unsigned int block, uint64_t generation)
{
	uint64_t sector = place(block) / SECTOR;
	uint64_t *end = memory + bs / sizeof(*memory);
	unsigned int i;

	for (; memory < end; memory += WORDS, sector++) {
		memory[0] = run;
		memory[1] = sector;
		memory[2] = generation;
		for (i = 3; i < WORDS; i++)
			memory[i] = (run ^ sector << 40 ^ generation) * (2 * i + 1);
	}
}

/* Says what is there instead of the newest generation. */
static void __attribute__((noreturn)) differs(const struct io *io)
{
	uint64_t *there = io->memory, *want = expected;

	while (!memcmp(there, want, SECTOR)) {
		there += WORDS;
		want += WORDS;
	}
	printf("sector %lu, generation %lu: ", want[1], want[2]);
	if (there[0] != run)
		die("there is something else, %016lx %016lx %016lx", there[0], there[1], there[2]);
	if (there[1] != want[1])
		die("there is sector %lu, generation %lu", there[1], there[2]);
	if (there[2] != want[2])
		die("there is generation %lu", there[2]);
	die("its data are wrong");
}

static void check(const struct io *io)
{
	fill(expected, io->block, blocks[io->block].generation);
	if (memcmp(io->memory, expected, bs))
		differs(io);
	if (last)
		last_reads++;
	else
		reads++;
}

static void submit(struct io *io)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (io->write) {
		fill(io->memory, io->block, blocks[io->block].generation + 1);
		io_uring_prep_write(sqe, fd, io->memory, bs, place(io->block));
	} else {
		io_uring_prep_read(sqe, fd, io->memory, bs, place(io->block));
	}
	io_uring_sqe_set_data(sqe, io);
	io->began = now_ms();
}

/* The block whose turn it is; -1: none */
static int choose(void)
{
	unsigned int n;

	if (last) {
		while (next_last < nr_blocks && !blocks[next_last].generation)
			next_last++;
		return next_last < nr_blocks ? (int)next_last++ : -1;
	}
	if (stop || failed)
		return -1;
	do
		n = random() % nr_blocks;
	while (blocks[n].busy);
	return n;
}

static void begin(struct io *io)
{
	int n = choose();

	if (n < 0)
		return;
	io->block = n;
	io->write = !blocks[n].generation;
	blocks[n].busy = true;
	in_flight++;
	submit(io);
}

static void end(struct io *io)
{
	blocks[io->block].busy = false;
	in_flight--;
	begin(io);
}

/* What is in flight ends, and nothing else begins. Another one may write there by now. */
static void fails(const struct io *io, const char *how)
{
	if (!failed)
		printf("sector %lu: %s: %s\n", place(io->block) / SECTOR,
		       io->write ? "write" : "read", how);
	failed = true;
}

static void written(struct io *io)
{
	blocks[io->block].generation++;
	writes++;
	if (sync_every && writes % sync_every == 0 && fsync(fd))
		fails(io, strerror(errno));
	if (pause_ms)
		usleep(pause_ms * 1000);
}

static void done(struct io *io, int result)
{
	uint64_t took = now_ms() - io->began;

	if (took > slowest_ms)
		slowest_ms = took;
	if (result != (int)bs)
		fails(io, result < 0 ? strerror(-result) : "short");
	else if (slowest_s && took > slowest_s * 1000)
		fails(io, "too slow");
	else if (io->write)
		written(io);
	else if (!failed)
		check(io);
	if (io->write || last || stop || failed) {
		end(io);
	} else {
		io->write = true;
		submit(io);
	}
}

static void go_through(struct io *ios)
{
	struct io_uring_cqe *cqe;
	unsigned int i, head, n;
	int err;

	for (i = 0; i < depth; i++)
		begin(&ios[i]);
	while (in_flight) {
		err = io_uring_submit_and_wait(&ring, 1);
		if (err < 0 && err != -EINTR)
			die("io_uring: %s", strerror(-err));
		n = 0;
		io_uring_for_each_cqe(&ring, head, cqe) {
			done(io_uring_cqe_get_data(cqe), cqe->res);
			n++;
		}
		io_uring_cq_advance(&ring, n);
	}
}

static void *memory(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~4095ull);

	if (!p)
		die("no memory");
	return memset(p, 0, size);
}

/* A file gets its blocks, so that they are overwritten from the beginning. */
static void open_file(const char *name)
{
	struct stat st;
	void *zeroes;

	fd = open(name, O_RDWR | O_DIRECT);
	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= place(nr_blocks))
		return;
	zeroes = memory(nr_blocks * bs);
	if (pwrite(fd, zeroes, nr_blocks * bs, offset) != (ssize_t)(nr_blocks * bs) || fsync(fd))
		die("%s: %s", name, strerror(errno));
	free(zeroes);
}

static const struct option options[] = {
	{ "bs", required_argument }, { "blocks", required_argument },
	{ "offset", required_argument }, { "depth", required_argument },
	{ "fsync", required_argument }, { "pause", required_argument },
	{ "slowest", required_argument }, { "poll", no_argument }, { }
};
/* Of those with an argument, in their order */
static uint64_t *const values[] = {
	&bs, &nr_blocks, &offset, &depth, &sync_every, &pause_ms, &slowest_s
};

static uint64_t number(const char *text)
{
	char *rest;
	uint64_t n = strtoull(text, &rest, 10);

	if (!strcmp(rest, "k"))
		return n << 10;
	if (!strcmp(rest, "m"))
		return n << 20;
	if (*rest || rest == text)
		die("what is %s?", text);
	return n;
}

static void parse(int argc, char **argv)
{
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		if (c)
			exit(2);
		if (options[i].has_arg)
			*values[i] = number(optarg);
		else
			polls = true;
	}
	if (optind != argc - 1)
		die("which file?");
	if (!bs || bs % SECTOR || offset % SECTOR || !depth || nr_blocks <= depth)
		die("blocks of whole sectors, and more of them than --depth");
}

static void on_signal(int signal) { stop = 1; }

int main(int argc, char **argv)
{
	/* No SA_RESTART: it is to end the wait for I/O. */
	struct sigaction action = { .sa_handler = on_signal };
	struct io *ios;
	unsigned int i;
	int err;

	setlinebuf(stdout);
	parse(argc, argv);
	sigaction(SIGINT, &action, NULL);
	open_file(argv[optind]);
	if (getrandom(&run, sizeof(run), 0) != sizeof(run))
		die("no random numbers");
	srandom(run);
	err = io_uring_queue_init(depth, &ring, polls ? IORING_SETUP_IOPOLL : 0);
	if (err)
		die("io_uring: %s", strerror(-err));
	expected = memory(bs);
	blocks = memory(nr_blocks * sizeof(*blocks));
	ios = memory(depth * sizeof(*ios));
	for (i = 0; i < depth; i++)
		ios[i].memory = memory(bs);
	go_through(ios);
	last = true;
	if (!failed)
		go_through(ios);
	if (failed)
		return 1;
	printf("ok: %lu writes, %lu reads verified meanwhile and %lu at the end, the slowest took %lu ms\n",
	       writes, reads, last_reads, slowest_ms);
	return 0;
}
