/* The same, first met by a blocked receive. */
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    await_bytes(fd, 70000);
    char some[100];
    DO(recv(fd, some, sizeof some, 0));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    send_pattern(fd, 0, 70000);
    DO(recv(fd, &byte, 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(close(fd));
}
