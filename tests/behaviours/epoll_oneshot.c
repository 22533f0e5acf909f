/* EPOLLONESHOT: one report, then silence until it is set again. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    int set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    meet();
    await_bytes(fd, 5);
    look_at(set, 4, "data", PATIENCE_MS);
    look_at(set, 4, "silence", 20);
    meet();
    await_bytes(fd, 8);
    look_at(set, 4, "silence", 20);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look_at(set, 4, "set again", 0);
    look_at(set, 4, "silence", 0);
    DO(recv(fd, bytes, 100, 0));
    event.events = EPOLLIN | EPOLLONESHOT | EPOLLET;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look_at(set, 4, "empty", 0);
    meet();
    look_at(set, 4, "data", PATIENCE_MS);
    look_at(set, 4, "silence", 0);
    DO(close(fd));
    DO(close(set));
    meet();
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(send(fd, "hello", 5, 0));
    meet();
    DO(send(fd, "abc", 3, 0));
    meet();
    DO(send(fd, "d", 1, 0));
    meet();
    DO(close(fd));
}
