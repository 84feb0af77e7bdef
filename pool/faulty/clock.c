//go:build ignore

/*
 * Preloaded into a process, this library adds an offset to its wall clock and leaves
 * its monotonic clocks alone. The offset is the first 8 bytes (signed nanoseconds,
 * native byte order) of the file named by FAULTY_CLOCK. The file stays mapped, so what
 * another process writes there counts from the next reading on.
 *
 * The kernel is called directly: a call of the C library would come back here.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile const int64_t *offset;

/* A server that silently kept the true time would let every test of a clock
 * fault pass, so anything unexpected ends the process. */
__attribute__((constructor)) static void map_offset(void)
{
	const char *path = getenv("FAULTY_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror("faulty clock: FAULTY_CLOCK does not name a readable file");
		_exit(1);
	}
	close(fd);
	offset = page;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	int failed = syscall(SYS_clock_gettime, clock, out);
	if (failed || !offset || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return failed;
	int64_t now = (int64_t)out->tv_sec * SECOND + out->tv_nsec + *offset;
	out->tv_sec = now / SECOND;
	out->tv_nsec = now % SECOND;
	if (out->tv_nsec < 0) { /* before 1970 */
		out->tv_nsec += SECOND;
		out->tv_sec--;
	}
	return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec now;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	out->tv_sec = now.tv_sec;
	out->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
