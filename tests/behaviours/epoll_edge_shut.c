/* Edge-triggered epoll: the peer's end is news also to one that reads no more. */
#include "behaviour.h"

static int set;

static void look(const char *when) {
    struct epoll_event event;
    int count = epoll_wait(set, &event, 1, 0);
    note("%s: %d %s", when, count, count > 0 ? events_text(event.events) : "");
}

static void server(int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    DO(shutdown(fd, SHUT_RD));
    look("shut");
    look("once");
    meet();
    meet();
    /* The client has ended; its word for it may still be on its way. */
    struct tcp_info info;
    do {
        socklen_t length = sizeof info;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
            die("TCP_INFO");
    } while (info.tcpi_state != TCP_CLOSE_WAIT);
    look("the peer's end");
    look("once");
    DO(close(fd));
    DO(close(set));
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(shutdown(fd, SHUT_WR));
    meet();
}
