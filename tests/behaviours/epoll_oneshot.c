/* EPOLLONESHOT: one report, then silence until it is set again. */
#include "behaviour.h"

static int set;

static void look(const char *when, int limit) {
    struct epoll_event events[4];
    int count = epoll_wait(set, events, 4, limit);
    note("%s: %d %s", when, count, count > 0 ? events_text(events[0].events) : "");
}

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    meet();
    await_bytes(fd, 5);
    look("data", 5000);
    look("silence", 20);
    meet();
    await_bytes(fd, 8);
    look("silence", 20);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("set again", 0);
    look("silence", 0);
    DO(recv(fd, bytes, 100, 0));
    event.events = EPOLLIN | EPOLLONESHOT | EPOLLET;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("empty", 0);
    meet();
    look("data", 5000);
    look("silence", 0);
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
