/* MSG_TRUNC on a stream drops bytes instead of copying them. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[64];
    warm(fd);
    meet();
    await_bytes(fd, 50);
    memset(bytes, '.', sizeof bytes);
    DO(recv(fd, bytes, 20, MSG_TRUNC));
    note("%.5s", bytes);
    DO(recv(fd, NULL, 10, MSG_TRUNC));
    DO(recv(fd, bytes, 64, 0));
    DO(right(bytes, 30, 20));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    send_pattern(fd, 0, 50);
    meet();
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
