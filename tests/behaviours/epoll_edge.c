/* Edge-triggered epoll: one report per arrival, none for what was left unread. */
#include "behaviour.h"

static int set;

static void look(const char *when, int limit) {
    struct epoll_event events[4];
    int count = epoll_wait(set, events, 4, limit);
    note("%s: %d %s", when, count, count > 0 ? events_text(events[0].events) : "");
}

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    look("idle", 0);
    meet();
    await_bytes(fd, 5);
    look("data", 5000);
    look("no new edge", 20);
    DO(recv(fd, bytes, 2, 0));
    look("nor for a part read", 20);
    meet();
    await_bytes(fd, 6);
    look("more data", 5000);
    look("no new edge", 0);
    DO(recv(fd, bytes, 100, 0));
    DO(recv(fd, bytes, 100, MSG_DONTWAIT));
    look("empty", 0);
    meet();
    await_bytes(fd, 2);
    look("again", 5000);
    /* A change of interest looks anew. */
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("after a change", 0);
    look("once", 0);
    event.events |= EPOLLOUT;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("both", 0);
    look("once", 0);
    DO(recv(fd, bytes, 100, 0));
    meet();
    settle_events(fd, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP);
    look("the end", 5000);
    look("once", 0);
    DO(close(fd));
    DO(close(set));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    DO(send(fd, "hello", 5, 0));
    meet();
    DO(send(fd, "abc", 3, 0));
    meet();
    DO(send(fd, "de", 2, 0));
    meet();
    DO(shutdown(fd, SHUT_WR));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
