/* readv and writev: many parts, empty parts, wrong counts. */
#include "behaviour.h"

static char bytes[100000];
static volatile int counts[2] = {-1, 1025};

static void server(int fd) {
    warm(fd);
    meet();
    await_bytes(fd, 600);
    struct iovec parts[4] = {{bytes, 100}, {bytes + 100, 0}, {bytes + 100, 300}, {bytes + 400, 1000}};
    DO(readv(fd, parts, 4));
    DO(right(bytes, 0, 600));
    DO(readv(fd, parts, 0));
    DO(readv(fd, parts, counts[0]));
    DO(readv(fd, parts, counts[1]));
    static struct iovec many[1024];
    for (int i = 0; i < 1024; i++)
        many[i] = (struct iovec){bytes + i, 1};
    meet();
    meet();
    await_bytes(fd, 1024);
    DO(readv(fd, many, 1024));
    DO(right(bytes, 600, 1024));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    fill(bytes, 0, 2000);
    struct iovec parts[4] = {{bytes, 1}, {bytes + 1, 0}, {NULL, 0}, {bytes + 1, 599}};
    DO(writev(fd, parts, 4));
    DO(writev(fd, parts, 0));
    DO(writev(fd, parts, counts[0]));
    DO(writev(fd, parts, counts[1]));
    meet();
    static struct iovec many[1024];
    for (int i = 0; i < 1024; i++)
        many[i] = (struct iovec){bytes + 600 + i, 1};
    meet();
    DO(writev(fd, many, 1024));
    meet();
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
