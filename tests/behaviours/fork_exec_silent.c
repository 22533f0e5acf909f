/* A child executes a program with a connection that has bytes which were not read, while the other end does something else and
 * cannot send anything anew, and the parent keeps the connection: program and parent read the bytes in turn, each once, and what
 * follows. So does a second program; one that reads nothing takes nothing away. */
#define OWN_ROLES
#include "behaviour.h"

enum { PIECE = 40000, TURN = 8000, MORE = 60000, WAIT = 40, GO = 41 };

static void expect_unread(int fd, int count, int failure) {
    int waiting = 0;
    if (ioctl(fd, FIONREAD, &waiting) < 0 || waiting != count)
        _exit(failure);
}

static void role(const char *name, int number) {
    char byte;
    if (!strcmp(name, "idle"))
        return;
    if (!strncmp(name, "from ", 5)) {
        int from = atoi(name + 5);
        me = &server_side;
        expect_unread(number, PIECE - from, 1);
        expect_pattern(number, from, TURN, 2);
        return;
    }
    int fd = dial(AF_INET, number);
    me = &client_side;
    warm(fd);
    send_pattern(fd, 0, PIECE);
    if (read(WAIT, &byte, 1) != 1)
        die("read");
    send_pattern(fd, PIECE, MORE);
    expect_pattern(fd, 0, 1000, 3);
    close(fd);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), way[2];
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    if (pipe(way) < 0 || dup2(way[0], WAIT) < 0 || dup2(way[1], GO) < 0)
        die("pipe");
    close(way[0]), close(way[1]);
    pid_t client = start_role("client", port);
    int fd = accept_one(listener);
    close(listener);
    warm(fd);
    await_bytes(fd, PIECE);
    int at = 500;
    expect_pattern(fd, 0, at, 4);
    for (int turn = 0; turn < 2; turn++) {
        char from[16];
        snprintf(from, sizeof from, "from %d", at);
        note_end(from, start_role(from, fd));
        note_end("idle", start_role("idle", fd));
        at += TURN;
        expect_unread(fd, PIECE - at, 5);
        expect_pattern(fd, at, TURN, 6);
        at += TURN;
    }
    expect_pattern(fd, at, PIECE - at, 7);
    if (write(GO, "g", 1) != 1)
        die("write");
    expect_pattern(fd, PIECE, MORE, 8);
    send_pattern(fd, 0, 1000);
    char byte;
    note("then %zd", recv(fd, &byte, 1, 0));
    close(fd);
    note_end("the client", client);
}
