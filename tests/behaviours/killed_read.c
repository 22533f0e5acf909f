/* A program is killed when it has read everything: the peer sees an end, not a reset. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port);
    char bytes[1000];
    warm(fd);
    /* In several parts: what was read is told late. */
    for (int i = 0; i < 5; i++)
        if (recv(fd, bytes, 200, MSG_WAITALL) != 200)
            note("no bytes");
    kill(getpid(), SIGKILL);
}

static void behaviour(void) {
    char byte;
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    int fd = accept_one(listener);
    warm(fd);
    for (int i = 0; i < 5; i++)
        send_pattern(fd, i * 200, 200);
    note_end("the client", child);
    await_events(fd, POLLRDHUP);
    DO(recv(fd, &byte, 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
