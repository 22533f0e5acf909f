/* A set that was made before a fork, and is used by the child for its own connections. */
#define OWN_ROLES
#include "behaviour.h"

enum { CLIENTS = 3, ROUNDS = 40 };

static void serve(int set, int listener) {
    struct epoll_event event;
    int left = CLIENTS;
    while (left > 0 && epoll_wait(set, &event, 1, 10000) == 1) {
        char byte;
        if (event.data.fd == listener) {
            event = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP, .data.fd = accept_one(listener)};
            epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event);
        } else if (recv(event.data.fd, &byte, 1, 0) == 1) {
            send(event.data.fd, &byte, 1, 0);
        } else {
            close(event.data.fd);
            left--;
        }
    }
    _exit(left);
}

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port), answers = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char byte = i;
        if (send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1 && byte == i)
            answers++;
    }
    note("%d answers", answers);
    close(fd);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), set = epoll_create1(EPOLL_CLOEXEC);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    DO(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
    pid_t child = fork();
    if (child == 0)
        serve(set, listener);
    for (int i = 0; i < CLIENTS; i++)
        note_end("a client", start_role("client", port));
    note_end("the child", child);
}
