/* The default action of SIGPIPE ends the writer. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port);
    warm(fd);
    signal(SIGPIPE, SIG_DFL);
    char byte;
    if (recv(fd, &byte, 1, 0) != 0)
        note("no end");
    for (int i = 0; i < 1000; i++) {
        if (write(fd, "x", 1) != 1)
            note("write: %s", error_name(errno));
        pause_ms(1);
    }
    note("still alive");
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    int fd = accept_one(listener);
    warm(fd);
    DO(close(fd));
    note_end("the client", child);
}
