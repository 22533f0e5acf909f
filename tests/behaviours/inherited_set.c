/* A set that was made before a fork, and is used by the child for its own connections. */
#define OWN_ROLES
#include "behaviour.h"

enum { CLIENTS = 3, ROUNDS = 40 };

static void role(const char *name UNUSED, int port) { ask_rounds(port, ROUNDS); }

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), set = epoll_create1(EPOLL_CLOEXEC);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    DO(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
    pid_t child = fork();
    if (child == 0)
        _exit(echo_by_set(set, listener, CLIENTS, EPOLLIN | EPOLLRDHUP));
    for (int i = 0; i < CLIENTS; i++)
        note_end("a client", start_role("client", port));
    note_end("the child", child);
}
