/* SHUT_RDWR on an open descriptor, seen from both ends. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    warm(fd);
    meet();
    DO(shutdown(fd, SHUT_RDWR));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(recv(fd, &byte, 1, 0));
    meet();
    meet();
    note("events %s", events_text(settle_events(fd, POLLIN | POLLOUT | POLLRDHUP, POLLIN | POLLOUT | POLLHUP | POLLRDHUP)));
    DO(shutdown(fd, SHUT_RD));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    note("events %s", events_text(await_events(fd, POLLIN | POLLRDHUP)));
    DO(recv(fd, &byte, 1, 0));
    DO(shutdown(fd, SHUT_RDWR));
    meet();
    note("events %s", events_text(settle_events(fd, POLLIN | POLLOUT | POLLRDHUP, POLLIN | POLLOUT | POLLHUP | POLLRDHUP)));
    DO(close(fd));
}
