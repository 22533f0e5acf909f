/* SO_RCVLOWAT counts what lay unread when the process forked and what has come since together. */
#include "behaviour.h"

static int ready(int set, int timeout) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, timeout);
}

static void server(int fd) {
    char bytes[1000];
    warm(fd);
    set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 500);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    meet();
    meet();
    await_bytes(fd, 300);
    pid_t child = fork();
    if (child == 0) /* It looks, and takes nothing. */
        _exit((int)recv(fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT));
    note_end("a child", child);
    DO(ready(set, 0));
    note_events(fd, POLLIN);
    meet();
    meet();
    await_bytes(fd, 400);
    DO(ready(set, 0));
    note_events(fd, POLLIN);
    meet();
    /* While these wait, the rest comes. */
    DO(ready(set, PATIENCE_MS));
    note("events %s", events_text(await_events(fd, POLLIN)));
    DO(recv(fd, bytes, 500, 0));
    DO(ready(set, 0));
    meet();
    DO(close(set));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    send_pattern(fd, 0, 300);
    meet();
    meet();
    send_pattern(fd, 300, 100);
    meet();
    meet();
    send_pattern(fd, 400, 100);
    meet();
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
