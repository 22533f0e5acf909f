/* A close that leaves bytes unread resets the connection. */
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    meet();
    await_bytes(fd, 1000);
    DO(close(fd));
    meet();
}

static void client(int fd) {
    char byte;
    warm(fd);
    send_pattern(fd, 0, 1000);
    meet();
    meet();
    await_events(fd, POLLERR | POLLHUP);
    DO(get_int(fd, SOL_SOCKET, SO_ERROR) == ECONNRESET);
    DO(get_int(fd, SOL_SOCKET, SO_ERROR));
    DO(recv(fd, &byte, 1, 0));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(close(fd));
}
