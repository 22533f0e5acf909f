/* Forked workers that each wait in a set of their own, made after the fork: the first, the second and the third alike. */
#define OWN_ROLES
#include "behaviour.h"

enum { WORKERS = 3, ROUNDS = 40 };

static void serve(int listener) {
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    _exit(echo_by_set(set, listener, 1, EPOLLIN | EPOLLRDHUP | EPOLLET));
}

static void role(const char *name UNUSED, int port) { ask_rounds(port, ROUNDS); }

static void behaviour(void) {
    int ports[WORKERS], listeners[WORKERS];
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        listeners[i] = listen_somewhere(AF_INET, &ports[i]);
        fcntl(listeners[i], F_SETFD, FD_CLOEXEC);
    }
    for (int i = 0; i < WORKERS; i++)
        if ((workers[i] = fork()) == 0)
            serve(listeners[i]);
    for (int i = 0; i < WORKERS; i++) {
        note_end("the client", start_role("client", ports[i]));
        note_end("its worker", workers[i]);
    }
}
