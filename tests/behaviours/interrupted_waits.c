/* Waits that a signal ends whatever SA_RESTART says, and masks for the time of a wait. */
#include "behaviour.h"

static pthread_t waiter;
static int stop;

static void *pester(void *unused UNUSED) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        pause_ms(3);
        pthread_kill(waiter, SIGUSR1);
    }
    return NULL;
}

static void server(int fd) {
    pthread_t thread;
    struct pollfd entry = {fd, POLLIN, 0};
    struct epoll_event event = {.events = EPOLLIN};
    struct timespec long_time = {PATIENCE_MS / 1000, 0}, short_time = {0, 60000000};
    sigset_t none, usr1;
    fd_set set;
    int epoll = epoll_create1(0);
    sigemptyset(&none), sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    waiter = pthread_self();
    warm(fd);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    on_signal(SIGUSR1, SA_RESTART);
    meet();
    pthread_create(&thread, NULL, pester, NULL);
    DO(poll(&entry, 1, PATIENCE_MS));
    DO(poll(&entry, 1, -1));
    DO(ppoll(&entry, 1, &long_time, NULL));
    FD_ZERO(&set);
    FD_SET(fd, &set);
    DO(select(fd + 1, &set, NULL, NULL, &(struct timeval){PATIENCE_MS / 1000, 0}));
    FD_ZERO(&set);
    FD_SET(fd, &set);
    DO(pselect(fd + 1, &set, NULL, NULL, NULL, NULL));
    DO(epoll_wait(epoll, &event, 1, -1));
    DO(epoll_pwait(epoll, &event, 1, PATIENCE_MS, NULL));
    /* Blocked for the time of the wait: it lasts. */
    DO(ppoll(&entry, 1, &short_time, &usr1));
    FD_ZERO(&set);
    FD_SET(fd, &set);
    DO(pselect(fd + 1, &set, NULL, NULL, &short_time, &usr1));
    DO(epoll_pwait(epoll, &event, 1, 60, &usr1));
    /* Blocked outside, let in by the wait. */
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    DO(poll(&entry, 1, 40));
    handled = 0;
    DO(ppoll(&entry, 1, &long_time, &none));
    DO(handled);
    pause_ms(10);
    DO(handled);
    DO(epoll_pwait(epoll, &event, 1, PATIENCE_MS, &none));
    DO(handled);
    stop = 1;
    pthread_join(thread, NULL);
    meet();
    note("events %s", events_text(await_events(fd, POLLIN)));
    DO(close(epoll));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    meet();
    meet();
    DO(send(fd, "x", 1, 0));
    pause_ms(30);
    DO(close(fd));
}
