/* Edge-triggered epoll: what came and was read at once is still news of the descriptor. With room for one event. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    int set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    look_at(set, 1, "writable", 0);
    look_at(set, 1, "once", 0);
    meet();
    await_bytes(fd, 5);
    DO(recv(fd, bytes, 100, 0));
    look_at(set, 1, "read before the look", 0);
    look_at(set, 1, "once", 0);
    meet();
    await_bytes(fd, 3);
    look_at(set, 1, "data", 0);
    meet();
    settle_events(fd, POLLRDHUP, POLLRDHUP);
    look_at(set, 1, "the end behind data", 0);
    look_at(set, 1, "once", 0);
    DO(close(fd));
    DO(close(set));
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(send(fd, "hello", 5, 0));
    meet();
    DO(send(fd, "abc", 3, 0));
    meet();
    DO(shutdown(fd, SHUT_WR));
}
