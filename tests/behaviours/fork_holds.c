/* The parent closes, a child still holds the connection: the peer sees the end when the child ends. */
#include "behaviour.h"

static void server(int fd) {
    int gate[2];
    char byte;
    warm(fd);
    meet();
    if (pipe(gate) < 0)
        die("pipe");
    pid_t child = fork();
    if (child == 0) {
        close(gate[1]);
        if (read(gate[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    DO(close(fd));
    meet();
    meet();
    close(gate[1]);
    note_end("the child", child);
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    struct pollfd entry = {fd, POLLIN, 0};
    DO(poll(&entry, 1, 60));
    meet();
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
