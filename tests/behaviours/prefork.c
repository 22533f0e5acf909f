/* Several processes accept on one listener. */
#define OWN_ROLES
#include "behaviour.h"

enum { WORKERS = 3, CLIENTS = 24 };

static void role(const char *name UNUSED, int port) {
    for (int i = 0; i < CLIENTS; i++) {
        int fd = dial(AF_INET, port);
        char byte;
        warm(fd);
        shutdown(fd, SHUT_WR);
        if (recv(fd, &byte, 1, 0) != 0)
            note("client %d is not served", i);
        close(fd);
    }
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if ((workers[i] = fork()) == 0)
            for (;;) {
                char byte;
                int fd = accept_one(listener);
                warm(fd);
                if (recv(fd, &byte, 1, 0) != 0)
                    _exit(1);
                close(fd);
            }
    pid_t client = start_role("client", port);
    note_end("the client", client);
    for (int i = 0; i < WORKERS; i++) {
        kill(workers[i], SIGTERM);
        note_end("a worker", workers[i]);
    }
}
