/* A process that has sent nothing shuts its side down while bytes lie unread there, after the other process has forked: that is the
 * end of one direction, and no hang-up. */
#include "behaviour.h"

enum { PIECE = 4096, PIECES = 64, LAST = 74, READ = 34 };

static void server(int fd) {
    char bytes[LAST];
    for (int piece = 0; piece < PIECES; piece++) {
        receive_pattern(fd, (size_t)piece * PIECE, PIECE);
        meet();
    }
    meet();
    await_bytes(fd, LAST);
    meet();
    meet();
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    DO(recv(fd, bytes, READ, 0));
    DO(shutdown(fd, SHUT_WR));
    meet();
    meet();
    DO(recv(fd, bytes, LAST - READ, MSG_WAITALL));
    DO(recv(fd, bytes, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    for (int piece = 0; piece < PIECES; piece++) {
        send_pattern(fd, (size_t)piece * PIECE, PIECE);
        meet();
    }
    send_pattern(fd, 0, LAST);
    meet();
    meet();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    note_end("a child", child);
    meet();
    meet();
    note("events %s", events_text(await_events(fd, POLLIN | POLLRDHUP)));
    pause_ms(5);
    note_events(fd, POLLIN | POLLOUT | POLLRDHUP);
    DO(recv(fd, &byte, 1, 0));
    meet();
    DO(close(fd));
}
