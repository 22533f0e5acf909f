/* Edge-triggered epoll: the peer's end is news also to one that reads no more. */
#include "behaviour.h"

static void server(int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    int set = epoll_create1(0);
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    DO(shutdown(fd, SHUT_RD));
    look_at(set, 1, "shut", 0);
    look_at(set, 1, "once", 0);
    meet();
    meet();
    /* The client has ended; its word for it may still be on its way. */
    struct tcp_info info;
    do {
        socklen_t length = sizeof info;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
            die("TCP_INFO");
    } while (info.tcpi_state != TCP_CLOSE_WAIT);
    look_at(set, 1, "the peer's end", 0);
    look_at(set, 1, "once", 0);
    DO(close(fd));
    DO(close(set));
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(shutdown(fd, SHUT_WR));
    meet();
}
