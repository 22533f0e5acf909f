/* A set that is changed by one thread while another waits on it. */
#include "behaviour.h"

static int set;
static struct epoll_event seen;

static void *wait_on(void *unused UNUSED) { return (void *)(intptr_t)epoll_wait(set, &seen, 1, PATIENCE_MS); }

static long with_waiter(int operation, int fd, int events, int tag) {
    pthread_t thread;
    void *result;
    struct epoll_event event = {.events = events, .data.u32 = tag};
    pthread_create(&thread, NULL, wait_on, NULL);
    pause_ms(20);
    DO(epoll_ctl(set, operation, fd, &event));
    pthread_join(thread, &result);
    note("the waiter got %ld, %d", (long)(intptr_t)result, (int)seen.data.u32);
    return 0;
}

static void server(int fd) {
    char byte;
    set = epoll_create1(0);
    warm(fd);
    with_waiter(EPOLL_CTL_ADD, fd, EPOLLOUT, 1);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 2};
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    with_waiter(EPOLL_CTL_MOD, fd, EPOLLOUT, 3);
    DO(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    meet();
    await_bytes(fd, 1);
    with_waiter(EPOLL_CTL_ADD, fd, EPOLLIN, 4);
    DO(recv(fd, &byte, 1, 0));
    /* Two waiters, edge-triggered, one byte: one of them is told. */
    event.events = EPOLLIN | EPOLLET;
    DO(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_on, NULL);
    pause_ms(20);
    meet();
    pthread_join(thread, &result);
    note("told: %ld", (long)(intptr_t)result);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
    meet();
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(send(fd, "a", 1, 0));
    meet();
    DO(send(fd, "b", 1, 0));
    meet();
    DO(close(fd));
}
