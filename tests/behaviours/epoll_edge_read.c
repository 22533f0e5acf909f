/* Edge-triggered epoll: what came and was read at once is still news of the descriptor. With room for one event. */
#include "behaviour.h"

static int set;

static void look(const char *when) {
    struct epoll_event event;
    int count = epoll_wait(set, &event, 1, 0);
    note("%s: %d %s", when, count, count > 0 ? events_text(event.events) : "");
}

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    look("writable");
    look("once");
    meet();
    await_bytes(fd, 5);
    DO(recv(fd, bytes, 100, 0));
    look("read before the look");
    look("once");
    meet();
    await_bytes(fd, 3);
    look("data");
    meet();
    settle_events(fd, POLLRDHUP, POLLRDHUP);
    look("the end behind data");
    look("once");
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
