/* SHUT_RD: an empty stream is at its end, but what comes later can still be read. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[64];
    warm(fd);
    meet();
    DO(shutdown(fd, SHUT_RD));
    DO(recv(fd, bytes, sizeof bytes, 0));
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    meet();
    meet();
    await_bytes(fd, 11);
    DO(recv(fd, bytes, sizeof bytes, 0));
    DO(recv(fd, bytes, sizeof bytes, 0));
    DO(send(fd, "still", 5, 0));
    DO(close(fd));
}

static void client(int fd) {
    char bytes[64];
    warm(fd);
    meet();
    meet();
    DO(send(fd, "after all ", 11, 0));
    meet();
    DO(recv(fd, bytes, 5, MSG_WAITALL));
    DO(recv(fd, bytes, 1, 0));
    DO(close(fd));
}
