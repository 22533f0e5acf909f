/* Linger of zero: close resets. What had come before stays readable. */
#include "behaviour.h"

static void server(int fd) {
    struct linger linger = {1, 0};
    warm(fd);
    DO(send(fd, "last words", 10, 0));
    meet();
    DO(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    meet();
    DO(close(fd));
}

static void client(int fd) {
    char bytes[64];
    warm(fd);
    meet();
    await_bytes(fd, 10);
    meet();
    await_events(fd, POLLHUP);
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    DO(recv(fd, bytes, sizeof bytes, 0));
    DO(recv(fd, bytes, sizeof bytes, 0));
    DO(recv(fd, bytes, sizeof bytes, 0));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(close(fd));
}
