/* SO_RCVLOWAT: readable, and received, only from so many bytes on. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[1000];
    warm(fd);
    meet();
    set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 100);
    DO(get_int(fd, SOL_SOCKET, SO_RCVLOWAT));
    meet();
    meet();
    await_bytes(fd, 60);
    note_events(fd, POLLIN);
    DO(recv(fd, bytes, 10, MSG_PEEK));
    meet();
    await_bytes(fd, 120);
    note("events %s", events_text(await_events(fd, POLLIN)));
    DO(recv(fd, bytes, 1000, 0));
    set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
    meet();
    DO(recv(fd, bytes, 1000, 0));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    send_pattern(fd, 0, 60);
    meet();
    meet();
    send_pattern(fd, 60, 60);
    meet();
    DO(send(fd, "x", 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
