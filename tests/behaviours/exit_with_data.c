/* A program writes and ends at once, by exit, _exit and SIGKILL: what it wrote arrives. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name, int port) {
    int fd = dial(AF_INET, port);
    warm(fd);
    send_pattern(fd, 0, 900000);
    if (!strcmp(name, "exit"))
        exit(0);
    if (!strcmp(name, "_exit"))
        _exit(0);
    if (!strcmp(name, "kill"))
        kill(getpid(), SIGKILL);
    abort();
}

static void behaviour(void) {
    static const char *names[] = {"exit", "_exit", "kill"};
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < 3; i++) {
        char byte;
        pid_t child = start_role(names[i], port);
        int fd = accept_one(listener);
        warm(fd);
        note_end(names[i], child);
        receive_pattern(fd, 0, 900000);
        DO(recv(fd, &byte, 1, 0));
        close(fd);
    }
}
