/* close_range, closefrom and loops over all numbers, with traffic before and after. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name UNUSED, int port) {
    for (int round = 0; round < 4; round++) {
        int fd = dial(AF_INET, port);
        char byte;
        warm(fd);
        if (recv(fd, &byte, 1, 0) != 0)
            note("no end in round %d", round);
        close(fd);
    }
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    int fd = accept_one(listener);
    warm(fd);
    DO(close_range(fd, 60000, 0));
    DO(recv(fd, &port, 1, 0));
    fd = accept_one(listener);
    note("connection %d", fd);
    warm(fd);
    closefrom(fd);
    DO(send(fd, &port, 1, 0));
    fd = accept_one(listener);
    note("connection %d", fd);
    warm(fd);
    for (int number = fd; number < 2048; number++)
        close(number);
    fd = accept_one(listener);
    note("connection %d", fd);
    warm(fd);
    DO(close_range(fd + 1, ~0u, CLOSE_RANGE_CLOEXEC));
    DO(close_range(5, 3, 0));
    DO(close_range(fd, fd, 0));
    note_end("the client", child);
}
