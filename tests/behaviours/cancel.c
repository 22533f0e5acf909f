/* A thread is cancelled in a blocked call; the connection lives on. */
#include "behaviour.h"

static int the_fd, set;

static void *receive(void *unused UNUSED) {
    char byte;
    recv(the_fd, &byte, 1, 0);
    return NULL;
}

static void *wait_poll(void *unused UNUSED) {
    struct pollfd entry = {the_fd, POLLIN, 0};
    poll(&entry, 1, -1);
    return NULL;
}

static void *wait_epoll(void *unused UNUSED) {
    struct epoll_event event;
    epoll_wait(set, &event, 1, -1);
    return NULL;
}

static void server(int fd) {
    void *(*bodies[])(void *) = {receive, wait_poll, wait_epoll};
    struct epoll_event event = {.events = EPOLLIN};
    warm(fd);
    the_fd = fd, set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, bodies[i], NULL);
        pause_ms(30);
        DO(pthread_cancel(thread));
        pthread_join(thread, &result);
        DO(result == PTHREAD_CANCELED);
    }
    meet();
    warm(fd);
    receive_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    warm(fd);
    send_pattern(fd, 0, 100000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
