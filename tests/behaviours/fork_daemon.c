/* A server becomes a daemon after the first exchanges: its child goes on, with bytes that nobody had read. */
#define OWN_ROLES
#include "behaviour.h"

enum { GENERATIONS = 4, PIECE = 60000 };

static void role(const char *name, int port) {
    int fd = dial(AF_INET, port);
    char byte;
    if (!strcmp(name, "client")) {
        me = &client_side;
        warm(fd);
        for (int i = 0; i < GENERATIONS; i++) {
            send_pattern(fd, (size_t)i * PIECE, PIECE);
            size_t before = me->length;
            receive_pattern(fd, (size_t)i * 100, 100);
            if (strstr(me->text + before, "all right"))
                me->length = before;
        }
        shutdown(fd, SHUT_WR);
        if (recv(fd, &byte, 1, 0) != 0)
            note("no end");
    }
    close(fd);
}

/* Each generation reads half of what has come, and leaves the rest, and the connection, to the next one. */
static void serve(int fd, int end) {
    for (int i = 0; i < GENERATIONS; i++) {
        size_t before = me->length;
        await_bytes(fd, 1000);
        receive_pattern(fd, (size_t)i * PIECE, 1000);
        pid_t child = fork();
        if (child < 0)
            die("fork");
        if (child > 0 && i % 2)
            exit(0);
        if (child > 0)
            _exit(0);
        receive_pattern(fd, (size_t)i * PIECE + 1000, PIECE - 1000);
        send_pattern(fd, (size_t)i * 100, 100);
        const char *first = strstr(me->text + before, "all right");
        if (!first || !strstr(first + 1, "all right")) {
            if (write(end, "x", 1) != 1)
                _exit(2);
            _exit(1);
        }
    }
    char byte;
    if (recv(fd, &byte, 1, 0) == 0 && write(end, "k", 1) == 1)
        _exit(0);
    _exit(1);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), end[2];
    char byte = '-';
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    if (pipe2(end, O_CLOEXEC) < 0)
        die("pipe");
    pid_t client = start_role("client", port);
    int fd = accept_one(listener);
    pid_t first = fork();
    if (first == 0) {
        close(end[0]);
        warm(fd);
        serve(fd, end[1]);
    }
    close(fd), close(end[1]);
    note_end("the first", first);
    note_end("the client", client);
    DO(read(end[0], &byte, 1));
    note("the last says %c", byte);
}
