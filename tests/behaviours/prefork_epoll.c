/* Forked workers that each wait in a set of their own, made after the fork: the first, the second and the third alike. */
#define OWN_ROLES
#include "behaviour.h"

enum { WORKERS = 3, ROUNDS = 40 };

static void serve(int listener) {
    int set = epoll_create1(0), left = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    while (left > 0 && epoll_wait(set, &event, 1, 10000) == 1) {
        char byte;
        if (event.data.fd == listener) {
            event = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.fd = accept_one(listener)};
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
