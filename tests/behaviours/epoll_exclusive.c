/* EPOLLEXCLUSIVE: allowed when added, refused in a change; at least one waiter is told, also after a fork. */
#include "behaviour.h"

static int sets[2], told;

static void *wait_on(void *number) {
    struct epoll_event event;
    /* The other one may be told instead. */
    while (!__atomic_load_n(&told, __ATOMIC_SEQ_CST))
        if (epoll_wait(sets[(intptr_t)number], &event, 1, 300) > 0)
            __atomic_add_fetch(&told, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void server(int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    pthread_t threads[2];
    char byte;
    warm(fd);
    for (int i = 0; i < 2; i++) {
        sets[i] = epoll_create1(0);
        DO(epoll_ctl(sets[i], EPOLL_CTL_ADD, fd, &event));
    }
    DO(epoll_ctl(sets[0], EPOLL_CTL_MOD, fd, &event));
    event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
    int third = epoll_create1(0);
    DO(epoll_ctl(third, EPOLL_CTL_ADD, fd, &event));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    note_end("a child", child);
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, wait_on, (void *)i);
    meet();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    DO(told >= 1);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
    meet();
}

static void client(int fd) {
    warm(fd);
    meet();
    pause_ms(50);
    DO(send(fd, "x", 1, 0));
    meet();
    DO(close(fd));
}
