/* Edge-triggered epoll: one report per arrival, none for what was left unread. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    int set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    look_at(set, 4, "idle", 0);
    meet();
    await_bytes(fd, 5);
    look_at(set, 4, "data", PATIENCE_MS);
    look_at(set, 4, "no new edge", 20);
    DO(recv(fd, bytes, 2, 0));
    look_at(set, 4, "nor for a part read", 20);
    meet();
    await_bytes(fd, 6);
    look_at(set, 4, "more data", PATIENCE_MS);
    look_at(set, 4, "no new edge", 0);
    DO(recv(fd, bytes, 100, 0));
    DO(recv(fd, bytes, 100, MSG_DONTWAIT));
    look_at(set, 4, "empty", 0);
    meet();
    await_bytes(fd, 2);
    look_at(set, 4, "again", PATIENCE_MS);
    /* A change of interest looks anew. */
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look_at(set, 4, "after a change", 0);
    look_at(set, 4, "once", 0);
    event.events |= EPOLLOUT;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look_at(set, 4, "both", 0);
    look_at(set, 4, "once", 0);
    DO(recv(fd, bytes, 100, 0));
    meet();
    settle_events(fd, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP);
    look_at(set, 4, "the end", PATIENCE_MS);
    look_at(set, 4, "once", 0);
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
