/* Stands before the C library (LD_PRELOAD) and counts the calls that change files below one folder. At the
 * K-th of them it kills the process, tears the write and kills, shortens the write, or lets the call fail, once
 * or from there on. Every counted call is a line of the log; the one that was hit begins with '!'. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL, TEAR, SHORTEN, FAIL, FAIL_ON };

static struct {
    int armed, action, error, log;
    long place;
    char below[4096], calls[256];
} fault;
static atomic_long counted;

/* Called by the process that is to be broken, before it begins. */
void fault_arm(const char *below, const char *calls, int action, long place, int error, const char *log) {
    snprintf(fault.below, sizeof fault.below, "%s", below);
    snprintf(fault.calls, sizeof fault.calls, "%s", calls);
    fault.action = action;
    fault.place = place;
    fault.error = error;
    fault.log = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC, 0600);
    fault.armed = 1;
}

static int concerns(const char *call, const char *path) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",%s,", call);
    return !strncmp(path, fault.below, strlen(fault.below)) && (!*fault.calls || strstr(fault.calls, wanted));
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* What to do with this call: COUNT lets it pass. */
static int meet(const char *call, const char *path) {
    if (!fault.armed || !path || !concerns(call, path)) return COUNT;
    long number = atomic_fetch_add(&counted, 1) + 1;
    int hit = fault.action != COUNT && (number == fault.place || (fault.action == FAIL_ON && number > fault.place));
    char line[4352];
    int length = snprintf(line, sizeof line, "%s%s %s\n", hit ? "!" : "", call, path);
    syscall(SYS_write, fault.log, line, length);
    if (hit && fault.action == KILL) die();
    return hit ? fault.action : COUNT;
}

static const char *name_of(int fd, char *buffer, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, buffer, size - 1);
    if (length < 0) return NULL;
    buffer[length] = 0;
    return buffer;
}

static int meet_fd(const char *call, int fd) {
    char path[4096];
    return fault.armed ? meet(call, name_of(fd, path, sizeof path)) : COUNT;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)
#define FAILED() return errno = fault.error, -1

#define WRITES(name, fd, whole, half) \
    int met = meet_fd(#name, fd); \
    if (met >= FAIL) FAILED(); \
    if (met == SHORTEN && size > 1) return half; \
    if (met == TEAR) { if (size > 1) (void)!half; die(); } \
    return whole

ssize_t write(int fd, const void *from, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    WRITES(write, fd, real(fd, from, size), real(fd, from, size / 2));
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    WRITES(pwrite, fd, real(fd, from, size, at), real(fd, from, size / 2, at));
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    WRITES(pwrite64, fd, real(fd, from, size, at), real(fd, from, size / 2, at));
}

#define PLAIN_FD(name, parameters, arguments, ...) \
    int name parameters { \
        REAL(int, name, __VA_ARGS__); \
        if (meet_fd(#name, fd) >= FAIL) FAILED(); \
        return real arguments; \
    }
#define PLAIN_PATH(name, parameters, arguments, ...) \
    int name parameters { \
        REAL(int, name, __VA_ARGS__); \
        if (meet(#name, path) >= FAIL) FAILED(); \
        return real arguments; \
    }
PLAIN_FD(fsync, (int fd), (fd), int)
PLAIN_FD(fdatasync, (int fd), (fd), int)
PLAIN_FD(ftruncate, (int fd, off_t size), (fd, size), int, off_t)
PLAIN_FD(ftruncate64, (int fd, off64_t size), (fd, size), int, off64_t)
PLAIN_PATH(rename, (const char *from, const char *path), (from, path), const char *, const char *)
PLAIN_PATH(link, (const char *from, const char *path), (from, path), const char *, const char *)
PLAIN_PATH(linkat, (int a, const char *from, int b, const char *path, int flags), (a, from, b, path, flags),
           int, const char *, int, const char *, int)
PLAIN_PATH(unlink, (const char *path), (path), const char *)
PLAIN_PATH(mkdir, (const char *path, mode_t mode), (path, mode), const char *, mode_t)

/* Opening counts where it may make a file. */
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if ((flags & O_ACCMODE) != O_RDONLY && meet("open", path) >= FAIL) FAILED(); \
        return real(path, flags, mode); \
    }
OPENS(open)
OPENS(open64)
