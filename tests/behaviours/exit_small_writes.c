/* A program that has written little by little, to a peer that does not read yet, ends at once by exit, quick_exit and _exit: all
 * of it arrives, and then the end. */
#define OWN_ROLES
#include "behaviour.h"

enum { WRITES = 300, PIECE = 8 };

static void role(const char *name, int port) {
    int fd = dial(AF_INET, port);
    warm(fd);
    for (size_t i = 0; i < WRITES; i++)
        send_pattern(fd, i * PIECE, PIECE);
    if (!strcmp(name, "exit"))
        exit(0);
    if (!strcmp(name, "quick_exit"))
        quick_exit(0);
    _exit(0);
}

static void behaviour(void) {
    static const char *names[] = {"exit", "quick_exit", "_exit"};
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < 3; i++) {
        char byte;
        pid_t child = start_role(names[i], port);
        int fd = accept_one(listener);
        warm(fd);
        note_end(names[i], child);
        receive_pattern(fd, 0, WRITES * PIECE);
        DO(recv(fd, &byte, 1, 0));
        close(fd);
    }
}
