/* A server that accepts and forks: the child serves, the parent closes. */
#define OWN_ROLES
#include "behaviour.h"

enum { CLIENTS = 5 };

static void role(const char *name UNUSED, int port) {
    for (int i = 0; i < CLIENTS; i++) {
        int fd = dial(AF_INET, port);
        char byte;
        warm(fd);
        send_pattern(fd, 0, 500000);
        shutdown(fd, SHUT_WR);
        if (recv(fd, &byte, 1, 0) != 1 || byte != 'k' || recv(fd, &byte, 1, 0) != 0)
            note("client %d is not served", i);
        close(fd);
    }
}

static void serve(int fd) {
    char byte;
    size_t before = me->length;
    warm(fd);
    receive_pattern(fd, 0, 500000);
    if (recv(fd, &byte, 1, 0) != 0)
        _exit(1);
    send(fd, strstr(me->text + before, "all right") ? "k" : "x", 1, 0);
    _exit(0);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t client = start_role("client", port);
    for (int i = 0; i < CLIENTS; i++) {
        int fd = accept_one(listener);
        pid_t child = fork();
        if (child == 0) {
            close(listener);
            serve(fd);
        }
        close(fd);
        note_end("a server", child);
    }
    note_end("the client", client);
}
