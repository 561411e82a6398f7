/* Preloaded: fsync and fdatasync fail with EIO for files whose name ends in $EIO_SUFFIX, while the file $EIO_WHEN
   exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
    const char *suffix = getenv("EIO_SUFFIX"), *when = getenv("EIO_WHEN");
    char link[64], name[4096];
    if (!suffix || !when || access(when, F_OK))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    size_t wanted = strlen(suffix);
    return length >= (ssize_t)wanted && !strncmp(name + length - wanted, suffix, wanted);
}

static int flush(const char *function, int fd) {
    if (fails(fd)) {
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, function))(fd);
}

int fsync(int fd) { return flush("fsync", fd); }
int fdatasync(int fd) { return flush("fdatasync", fd); }
