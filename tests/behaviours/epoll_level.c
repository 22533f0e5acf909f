/* Level-triggered epoll along the life of a connection. */
#include "behaviour.h"

static int set;

static void look(const char *when, int limit) {
    struct epoll_event events[4];
    int count = epoll_wait(set, events, 4, limit);
    note("%s: %d %s%d", when, count, count > 0 ? events_text(events[0].events) : "", count > 0 ? (int)events[0].data.u32 : 0);
}

static void server(int fd) {
    char bytes[100];
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = 11};
    set = epoll_create1(EPOLL_CLOEXEC);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    warm(fd);
    look("idle", 0);
    look("idle, waiting", 20);
    event.events |= EPOLLOUT;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("writable", -1);
    look("writable still", -1);
    event.events = EPOLLIN | EPOLLRDHUP, event.data.u32 = 12;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("idle again", 0);
    meet();
    look("data", PATIENCE_MS);
    look("data still", 0);
    DO(recv(fd, bytes, 2, 0));
    look("a part", 0);
    DO(recv(fd, bytes, 100, 0));
    look("none", 0);
    DO(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    meet();
    await_bytes(fd, 3);
    look("not in the set", 0);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    look("in the set", 0);
    DO(recv(fd, bytes, 100, 0));
    event.events = 0;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    meet();
    await_bytes(fd, 1);
    look("nothing asked", 0);
    event.events = EPOLLIN | EPOLLRDHUP;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    look("asked", 0);
    DO(recv(fd, bytes, 100, 0));
    meet();
    settle_events(fd, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP);
    look("the end", PATIENCE_MS);
    DO(recv(fd, bytes, 100, 0));
    look("the end still", 0);
    DO(shutdown(fd, SHUT_WR));
    settle_events(fd, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP | POLLHUP);
    look("both ends", 0);
    DO(close(fd));
    look("closed", 0);
    DO(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    DO(close(set));
    meet();
}

static void client(int fd) {
    warm(fd);
    meet();
    pause_ms(20);
    DO(send(fd, "hello", 5, 0));
    meet();
    DO(send(fd, "abc", 3, 0));
    meet();
    DO(send(fd, "d", 1, 0));
    meet();
    DO(shutdown(fd, SHUT_WR));
    meet();
    DO(close(fd));
}
