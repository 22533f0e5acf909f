/* One direction ends, the other goes on. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    warm(fd);
    receive_pattern(fd, 0, 300000);
    DO(recv(fd, &byte, 1, 0));
    DO(recv(fd, &byte, 1, MSG_DONTWAIT));
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    send_pattern(fd, 7, 300000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    send_pattern(fd, 0, 300000);
    DO(shutdown(fd, SHUT_WR));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    receive_pattern(fd, 7, 300000);
    DO(recv(fd, &byte, 1, 0));
    DO(shutdown(fd, SHUT_WR));
    DO(close(fd));
}
