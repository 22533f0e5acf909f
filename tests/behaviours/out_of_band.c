/* An urgent byte: only TCP can carry it. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[32];
    warm(fd);
    meet();
    await_events(fd, POLLPRI);
    DO(recv(fd, bytes, 32, 0));
    note("%.5s", bytes);
    DO(sockatmark(fd));
    DO(recv(fd, bytes, 1, MSG_OOB));
    note("%.1s", bytes);
    DO(recv(fd, bytes, 5, MSG_WAITALL));
    note("%.5s", bytes);
    warm(fd);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    DO(send(fd, "hello", 5, 0));
    DO(send(fd, "!", 1, MSG_OOB));
    DO(send(fd, "again", 5, 0));
    meet();
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
