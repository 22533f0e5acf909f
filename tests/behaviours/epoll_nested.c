/* A set in a set, a set in poll and in select, after a wait and a fork. A wait that tells of nothing changes nothing. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[10];
    int inner = epoll_create1(0), outer = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 1};
    warm(fd);
    DO(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event));
    DO(epoll_wait(inner, &event, 1, 0));
    note("then %x %u", event.events, event.data.u32);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    note_end("a child", child);
    event.data.u32 = 2;
    DO(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event));
    DO(epoll_ctl(inner, EPOLL_CTL_ADD, outer, &event));
    DO(epoll_ctl(inner, EPOLL_CTL_ADD, inner, &event));
    DO(epoll_wait(outer, &event, 1, 0));
    meet();
    DO(epoll_wait(outer, &event, 1, PATIENCE_MS));
    DO(event.data.u32);
    struct pollfd entry = {inner, POLLIN, 0};
    DO(poll(&entry, 1, PATIENCE_MS));
    note("%s", events_text(entry.revents));
    fd_set in;
    FD_ZERO(&in);
    FD_SET(outer, &in);
    DO(select(outer + 1, &in, NULL, NULL, NULL));
    DO(epoll_wait(inner, &event, 1, PATIENCE_MS));
    DO(event.data.u32);
    DO(recv(fd, bytes, 10, 0));
    DO(poll(&entry, 1, 0));
    DO(epoll_wait(outer, &event, 1, 0));
    /* Asleep in the outer one while the byte comes. */
    meet();
    DO(epoll_wait(outer, &event, 1, PATIENCE_MS));
    DO(recv(fd, bytes, 10, 0));
    meet();
    DO(poll(&entry, 1, PATIENCE_MS));
    DO(recv(fd, bytes, 10, 0));
    meet();
    DO(close(inner));
    DO(epoll_wait(outer, &event, 1, 0));
    DO(close(outer));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(send(fd, "a", 1, 0));
    for (int i = 0; i < 2; i++) {
        meet();
        pause_ms(30);
        DO(send(fd, "b", 1, 0));
    }
    meet();
    DO(close(fd));
}
