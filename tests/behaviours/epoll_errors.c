/* What epoll refuses. */
#include "behaviour.h"

static volatile int minus_one = -1;

static void server(int fd) {
    struct epoll_event event = {.events = EPOLLIN}, events[2];
    int set = epoll_create1(0);
    warm(fd);
    DO(epoll_create1(12345));
    DO(epoll_create(0));
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    DO(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    DO(epoll_ctl(set, 77, fd, &event));
    DO(epoll_ctl(set, EPOLL_CTL_ADD, 99, &event));
    DO(epoll_ctl(99, EPOLL_CTL_ADD, fd, &event));
    DO(epoll_ctl(fd, EPOLL_CTL_ADD, set, &event));
    DO(epoll_ctl(set, EPOLL_CTL_ADD, set, &event));
    DO(epoll_wait(99, events, 2, 0));
    DO(epoll_wait(fd, events, 2, 0));
    DO(epoll_wait(set, events, 0, 0));
    DO(epoll_wait(set, events, minus_one, 0));
    DO(epoll_wait(set, events, 2, 0));
    DO(epoll_ctl(set, EPOLL_CTL_DEL, fd, &event));
    DO(epoll_ctl(set, EPOLL_CTL_DEL, fd, &event));
    DO(close(set));
    DO(close(fd));
    meet();
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(close(fd));
}
