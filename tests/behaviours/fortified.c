/* The checked names of the C library: sizes known at compile time, counts at run time. */
#include "behaviour.h"

static volatile size_t ten = 10;

static void server(int fd) {
    char bytes[64];
    struct pollfd list[2] = {{fd, POLLIN, 0}, {fd, POLLOUT, 0}};
    warm(fd);
    meet();
    await_bytes(fd, 40);
    DO(read(fd, bytes, ten));
    DO(recv(fd, bytes, ten, 0));
    DO(recvfrom(fd, bytes, ten, 0, NULL, NULL));
    DO(poll(list, ten / 5, 0));
    struct timespec zero = {0, 0};
    DO(ppoll(list, ten / 5, &zero, NULL));
    DO(read(fd, bytes, ten));
    DO(right(bytes, 30, 10));
    DO(close(fd));
    meet();
}

static void client(int fd) {
    warm(fd);
    send_pattern(fd, 0, 40);
    meet();
    meet();
    DO(close(fd));
}
