/* A set of a socket, a pipe, a timer and an event counter. */
#include "behaviour.h"

static int set;

static void look(const char *when, int limit) {
    struct epoll_event events[8];
    int count = epoll_wait(set, events, 8, limit), tags = 0;
    for (int i = 0; i < count; i++)
        tags |= 1 << events[i].data.u32;
    note("%s: %d, tags %x", when, count, tags);
}

static void add(int fd, int tag) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
}

static void server(int fd) {
    char bytes[16];
    int ends[2], timer = timerfd_create(CLOCK_MONOTONIC, 0), counter = eventfd(0, 0);
    set = epoll_create1(0);
    warm(fd);
    if (pipe(ends) < 0)
        die("pipe");
    add(fd, 0), add(ends[0], 1), add(timer, 2), add(counter, 3);
    struct epoll_event event = {.events = EPOLLIN};
    int file = memfd_create("file", 0);
    (void)file;
    int regular = open("/proc/self/exe", O_RDONLY);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, regular, &event));
    close(regular);
    look("idle", 0);
    struct itimerspec soon = {{0, 0}, {0, 20000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    look("timer", PATIENCE_MS);
    DO(read(timer, bytes, 8));
    DO(write(ends[1], "p", 1));
    look("pipe", PATIENCE_MS);
    DO(eventfd_write(counter, 3));
    look("pipe and counter", PATIENCE_MS);
    meet();
    await_bytes(fd, 1);
    look("and socket", PATIENCE_MS);
    DO(read(ends[0], bytes, 1));
    DO(read(counter, bytes, 8));
    look("socket only", PATIENCE_MS);
    DO(recv(fd, bytes, 1, 0));
    look("idle", 0);
    meet();
    for (int i = 0; i < 2; i++) {
        look("asleep", PATIENCE_MS);
        DO(recv(fd, bytes, 1, 0));
    }
    DO(close(fd));
    DO(close(ends[1]));
    look("pipe's end", 0);
    meet();
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    DO(send(fd, "a", 1, 0));
    meet();
    for (int i = 0; i < 2; i++) {
        pause_ms(30);
        DO(send(fd, "b", 1, 0));
    }
    meet();
    (void)byte;
    DO(close(fd));
}
