/* A shutdown ends the waits of other threads: recv, poll, epoll_wait. */
#include "behaviour.h"

static int the_fd, set;

static void *receive(void *unused UNUSED) {
    char byte;
    return (void *)(intptr_t)recv(the_fd, &byte, 1, 0);
}

static void *wait_poll(void *unused UNUSED) {
    struct pollfd entry = {the_fd, POLLIN, 0};
    return (void *)(intptr_t)poll(&entry, 1, PATIENCE_MS);
}

static void *wait_epoll(void *unused UNUSED) {
    struct epoll_event event;
    return (void *)(intptr_t)epoll_wait(set, &event, 1, PATIENCE_MS);
}

static void server(int fd) {
    void *(*bodies[])(void *) = {receive, wait_poll, wait_epoll};
    pthread_t threads[3];
    struct epoll_event event = {.events = EPOLLIN};
    warm(fd);
    the_fd = fd, set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    pause_ms(50);
    DO(shutdown(fd, SHUT_RDWR));
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        note("thread %d: %ld", i, (long)(intptr_t)result);
    }
    DO(close(set));
    DO(close(fd));
    meet();
}

static void client(int fd) {
    char byte;
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    meet();
    DO(close(fd));
}
