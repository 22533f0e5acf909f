/* A program is executed with a connection that has bytes which were not read, while the other end does something else and cannot
 * send anything anew: the program reads them, and what follows. Before, one that is not there cannot be executed. */
#define OWN_ROLES
#include "behaviour.h"

enum { PIECE = 40000, MORE = 60000, WAIT = 40, GO = 41 };

static void stage(int fd) {
    int waiting = 0;
    me = &server_side;
    if (ioctl(fd, FIONREAD, &waiting) < 0 || waiting < PIECE - 1000)
        _exit(1);
    expect_pattern(fd, 1000, PIECE - 1000, 2);
    if (write(GO, "g", 1) != 1)
        die("write");
    expect_pattern(fd, PIECE, MORE, 3);
    send_pattern(fd, 0, 1000);
    char byte;
    if (recv(fd, &byte, 1, 0) != 0)
        _exit(4);
    close(fd);
    _exit(0);
}

static void role(const char *name, int number) {
    if (!strcmp(name, "stage")) {
        stage(number);
        return;
    }
    char byte;
    int fd = dial(AF_INET, number);
    me = &client_side;
    warm(fd);
    send_pattern(fd, 0, PIECE);
    if (read(WAIT, &byte, 1) != 1)
        die("read");
    send_pattern(fd, PIECE, MORE);
    expect_pattern(fd, 0, 1000, 5);
    close(fd);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), way[2];
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    if (pipe(way) < 0 || dup2(way[0], WAIT) < 0 || dup2(way[1], GO) < 0)
        die("pipe");
    close(way[0]), close(way[1]);
    pid_t client = start_role("client", port), server = fork();
    if (server == 0) {
        char text[16];
        int fd = accept_one(listener);
        warm(fd);
        await_bytes(fd, PIECE);
        expect_pattern(fd, 0, 500, 6);
        if (execl("/nowhere/at/all", "all", (char *)NULL) != -1 || errno != ENOENT)
            _exit(7);
        expect_pattern(fd, 500, 500, 8);
        snprintf(text, sizeof text, "%d", fd);
        execl("/proc/self/exe", program, "stage", text, (char *)NULL);
        die("execl");
    }
    close(listener);
    note_end("the server", server);
    note_end("the client", client);
}
