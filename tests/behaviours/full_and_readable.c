/* Who has much under way that the peer does not read, and has something to read as well: it may still write, as far as the
 * connection is concerned, and is told so however often it asks. */
#include "behaviour.h"

enum { MUCH = 120000, FEW = 50 };

static int asked_by_poll(int fd) {
    struct pollfd entry = {fd, POLLIN | POLLOUT, 0};
    if (poll(&entry, 1, PATIENCE_MS) != 1)
        die("poll");
    return entry.revents;
}

static int asked_by_select(int fd) {
    fd_set in, out;
    struct timeval limit = {PATIENCE_MS / 1000, 0};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(fd, &in);
    FD_SET(fd, &out);
    if (select(fd + 1, &in, &out, NULL, &limit) < 1)
        die("select");
    return (FD_ISSET(fd, &in) ? POLLIN : 0) | (FD_ISSET(fd, &out) ? POLLOUT : 0);
}

static int set;

static int asked_by_set(int fd UNUSED) {
    struct epoll_event event;
    if (epoll_wait(set, &event, 1, PATIENCE_MS) != 1)
        die("epoll_wait");
    return event.events;
}

/* One round at one end. */
static void round_of(int fd, const char *how, int (*ask)(int)) {
    send_pattern(fd, 0, FEW);
    await_bytes(fd, FEW);
    meet();
    send_pattern(fd, FEW, MUCH);
    int events = 0;
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; events != (POLLIN | POLLOUT) && now_us() < end;)
        events = ask(fd);
    note("%s: %s", how, events_text(events));
    meet();
    receive_pattern(fd, 0, FEW + MUCH);
    meet();
}

static void server(int fd) {
    warm(fd);
    round_of(fd, "poll", asked_by_poll);
    warm(fd);
    round_of(fd, "select", asked_by_select);
}

static void client(int fd) {
    warm(fd);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
    set = epoll_create1(EPOLL_CLOEXEC);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    round_of(fd, "epoll", asked_by_set);
    warm(fd);
    round_of(fd, "poll", asked_by_poll);
}
