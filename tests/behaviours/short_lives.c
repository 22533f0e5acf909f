/* Many short connections, one after the other. */
#define OWN_ROLES
#include "behaviour.h"

static void role(const char *name UNUSED, int port) {
    for (int i = 0; i < 200; i++) {
        char answer[6] = {0};
        int fd = dial(AF_INET, port);
        if (send(fd, "ask", 3, 0) != 3 || recv(fd, answer, 6, MSG_WAITALL) != 6 || memcmp(answer, "answer", 6))
            note("no answer to %d", i);
        if (i % 3 == 0)
            warm(fd);
        close(fd);
    }
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), good = 0;
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    for (int i = 0; i < 200; i++) {
        char bytes[8];
        int fd = accept_one(listener);
        good += recv(fd, bytes, 3, MSG_WAITALL) == 3 && send(fd, "answer", 6, 0) == 6;
        if (i % 3 == 0)
            warm(fd);
        good += recv(fd, bytes, 1, 0) == 0;
        close(fd);
    }
    DO(good);
    note_end("the client", child);
}
