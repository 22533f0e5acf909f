/* A program is killed with bytes unread: the peer sees a reset. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port);
    char byte;
    warm(fd);
    if (recv(fd, &byte, 1, 0) != 1)
        note("no byte");
    await_bytes(fd, 999);
    kill(getpid(), SIGKILL);
}

static void behaviour(void) {
    char byte;
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    int fd = accept_one(listener);
    warm(fd);
    send_pattern(fd, 0, 1000);
    note_end("the client", child);
    await_events(fd, POLLHUP);
    DO(recv(fd, &byte, 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(close(fd));
}
