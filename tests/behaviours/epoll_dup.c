/* Interest belongs to the open file: a copy of the descriptor keeps it. */
#include "behaviour.h"

static void server(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 5}, got;
    char byte;
    int set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    int copy = dup(fd);
    event.data.u32 = 6;
    DO(epoll_ctl(set, EPOLL_CTL_ADD, copy, &event));
    DO(epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL));
    DO(close(fd));
    meet();
    await_bytes(copy, 1);
    DO(epoll_wait(set, &got, 1, PATIENCE_MS));
    DO(got.data.u32);
    DO(recv(copy, &byte, 1, 0));
    DO(epoll_wait(set, &got, 1, 0));
    DO(close(copy));
    meet();
    DO(epoll_wait(set, &got, 1, 0));
    DO(close(set));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    DO(send(fd, "a", 1, 0));
    DO(recv(fd, &byte, 1, 0));
    meet();
    DO(close(fd));
}
