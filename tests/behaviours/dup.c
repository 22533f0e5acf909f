/* dup, dup2, dup3, F_DUPFD: one connection under several numbers, and the lowest free number. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port);
    char byte;
    warm(fd);
    send_pattern(fd, 0, 4000);
    if (recv(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 0)
        note("no byte, or no end");
}

static void behaviour(void) {
    char bytes[1000];
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    int fd = accept_one(listener);
    note("listener %d, connection %d", listener, fd);
    DO(dup(fd));
    DO(open("/dev/null", O_RDWR));
    warm(fd);
    DO(open("/dev/null", O_RDWR));
    int copy = dup(fd);
    DO(copy);
    DO(dup2(fd, 5));
    DO(dup2(fd, fd));
    DO(dup3(fd, fd, 0));
    DO(dup3(fd, 40, O_CLOEXEC));
    DO(fcntl(40, F_GETFD));
    DO(fcntl(fd, F_DUPFD, 50));
    DO(fcntl(fd, F_DUPFD_CLOEXEC, 50));
    DO(dup2(99, fd));
    DO(recv(fd, bytes, 1000, MSG_WAITALL));
    DO(recv(copy, bytes, 1000, MSG_WAITALL));
    DO(right(bytes, 1000, 1000));
    DO(close(fd));
    DO(recv(5, bytes, 1000, MSG_WAITALL));
    DO(right(bytes, 2000, 1000));
    DO(open("/dev/null", O_RDWR));
    /* Something else in the place of a copy. */
    DO(dup2(fd, copy));
    DO(write(copy, "gone", 4));
    DO(recv(40, bytes, 1000, MSG_WAITALL));
    DO(right(bytes, 3000, 1000));
    set_nonblocking(50, 1);
    DO(recv(51, bytes, 1, 0));
    DO(send(40, "x", 1, 0));
    for (int number = 3; number <= 60; number++)
        close(number);
    note_end("the client", child);
    DO(dup(1));
}
