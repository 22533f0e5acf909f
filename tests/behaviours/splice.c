/* splice between a socket and a pipe, both ways. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[200];
    int ends[2];
    warm(fd);
    if (pipe(ends) < 0)
        die("pipe");
    meet();
    await_bytes(fd, 200);
    DO(recv(fd, bytes, 50, 0));
    DO(splice(fd, NULL, ends[1], NULL, 100, 0));
    DO(read(ends[0], bytes, 200));
    DO(right(bytes, 50, 100));
    DO(recv(fd, bytes, 50, 0));
    DO(right(bytes, 150, 50));
    fill(bytes, 0, 100);
    DO(write(ends[1], bytes, 100));
    DO(splice(ends[0], NULL, fd, NULL, 100, 0));
    warm(fd);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    send_pattern(fd, 0, 200);
    meet();
    receive_pattern(fd, 0, 100);
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
