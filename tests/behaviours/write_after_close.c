/* The peer has closed: the first write is taken, and answered with a reset. */
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    meet();
    DO(close(fd));
    meet();
    meet();
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    DO(recv(fd, &byte, 1, 0));
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    DO(send(fd, "taken", 5, MSG_NOSIGNAL));
    await_events(fd, POLLERR | POLLHUP);
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(recv(fd, &byte, 1, 0));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    meet();
    DO(close(fd));
}
