/* A handler jumps out of a call that waits. The call is over then: a close ends the connection, whoever closes it. */
#include "behaviour.h"
#include <setjmp.h>

static __thread sigjmp_buf way;
static __thread int inner, steps;
static int echo[2];

/* What a handler does before it jumps: calls of its own, and a jump that stays inside. */
static void jump(int number UNUSED) {
    jmp_buf local;
    char byte = 'n';
    if (inner) {
        if (send(echo[0], &byte, 1, 0) == 1 && recv(echo[1], &byte, 1, 0) == 1)
            steps++;
        if (setjmp(local) == 0)
            longjmp(local, 1);
        steps++;
        if (inner == 2)
            return;
    }
    siglongjmp(way, 1);
}

static void arm(timer_t *timer, int signal) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    struct itimerspec time = {.it_value.tv_nsec = 20000000};
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, timer) < 0 || timer_settime(*timer, 0, &time, NULL) < 0)
        die("timer");
}

static timer_t timer, second_timer;
static int leaves_both;

/* A handler in a handler: the second one comes while the first one waits, and leaves both, or only its own call. */
static void nested(int number UNUSED) {
    sigjmp_buf outer, own;
    char byte;
    memcpy(&outer, &way, sizeof outer);
    if (sigsetjmp(own, 1) == 0) {
        if (!leaves_both)
            memcpy(&way, &own, sizeof way);
        arm(&second_timer, SIGUSR2);
        recv(echo[1], &byte, 1, 0);
    }
    steps++;
    siglongjmp(outer, 1);
}

static void make_pair(int listener, int port, int pair[2], int warmed) {
    char byte = 'w';
    pair[0] = dial(AF_INET, port), pair[1] = accept_one(listener);
    for (int i = 0; i < (warmed ? 40 : 0); i++)
        for (int turn = 0; turn < 2; turn++)
            if (send(pair[turn], &byte, 1, 0) != 1 || recv(pair[!turn], &byte, 1, 0) != 1)
                die("exchange");
}

static void *close_it(void *fd) {
    close((int)(intptr_t)fd);
    return NULL;
}

enum call { RECV, PEEK, SEND, POLL, SELECT, EPOLL, SENDFILE, CALLS };

/* Waits for something that does not come. */
static void wait_in(enum call call, int fd, int set, int file) {
    static char bytes[1 << 20];
    struct pollfd entry = {fd, POLLIN, 0};
    struct epoll_event event;
    fd_set readable;
    switch (call) {
    case RECV:
        recv(fd, bytes, 10, 0);
        break;
    case PEEK:
        recv(fd, bytes, 10, MSG_PEEK | MSG_WAITALL);
        break;
    case SEND:
        for (;;)
            send(fd, bytes, sizeof bytes, 0);
    case POLL:
        poll(&entry, 1, -1);
        break;
    case SELECT:
        FD_ZERO(&readable);
        FD_SET(fd, &readable);
        select(fd + 1, &readable, NULL, NULL, NULL);
        break;
    case EPOLL:
        epoll_wait(set, &event, 1, -1);
        break;
    case SENDFILE:
        for (;;) {
            off_t start = 0;
            sendfile(fd, file, &start, sizeof bytes);
        }
    default:
        break;
    }
}

/* Whether the other end learns that this one is closed. */
static void await_end(int fd, const char *what, int warmed) {
    static char bytes[65536];
    struct timeval limit = {10, 0};
    ssize_t got;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    note("%s, %s: %s", what, warmed ? "warm" : "new", got == 0 ? "the end" : error_name(errno));
    close(fd);
}

static void server(int fd) {
    static const char *names[] = {"recv", "peek", "send", "poll", "select", "epoll", "sendfile"};
    static char other_stack[1 << 16];
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    int port, listener = listen_somewhere(AF_INET, &port), file = memfd_create("file", 0);
    if (ftruncate(file, 1 << 20) < 0)
        die("ftruncate");
    warm(fd);
    make_pair(listener, port, echo, 1);
    sigaltstack(&stack, NULL);
    for (volatile int round = 0; round < CALLS * 8; round++) {
        volatile int warmed = round % 2, elsewhere = round / 2 % 2, on_stack = round / 4 % 2;
        volatile enum call call = round / 8;
        struct sigaction action = {.sa_handler = jump, .sa_flags = on_stack ? SA_ONSTACK : 0};
        volatile int one, other, set = epoll_create1(0);
        int pair[2];
        make_pair(listener, port, pair, warmed);
        one = pair[0], other = pair[1];
        struct epoll_event event = {.events = EPOLLIN, .data.fd = one};
        epoll_ctl(set, EPOLL_CTL_ADD, one, &event);
        sigaction(SIGUSR1, &action, NULL);
        inner = round % 3 == 0;
        if (sigsetjmp(way, 1) == 0) {
            arm(&timer, SIGUSR1);
            wait_in(call, one, set, file);
            note("it came back");
        }
        timer_delete(timer);
        if (elsewhere) {
            pthread_t thread;
            pthread_create(&thread, NULL, close_it, (void *)(intptr_t)one);
            pthread_join(thread, NULL);
        } else {
            close(one);
        }
        close(set);
        await_end(other, names[call], warmed);
    }
    note("%d steps in handlers", steps);

    /* A handler that returns has left nothing: the call goes on, and the connection lives while it waits. */
    for (int warmed = 0; warmed < 2; warmed++) {
        struct sigaction action = {.sa_handler = jump, .sa_flags = SA_RESTART | SA_ONSTACK};
        int pair[2];
        char byte = 0;
        sigaction(SIGUSR1, &action, NULL);
        inner = 2, steps = 0;
        make_pair(listener, port, pair, warmed);
        struct timeval limit = {0, 300000};
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        arm(&timer, SIGUSR1);
        /* Ended by the handler, or in time if that came before. */
        ssize_t got = recv(pair[0], &byte, 1, 0);
        note("handler that returns: %zd, %d steps", got, steps);
        timer_delete(timer);
        close(pair[0]);
        await_end(pair[1], "after it", warmed);
    }

    /* Two handlers, one in the other's call. */
    for (volatile int round = 0; round < 8; round++) {
        volatile int warmed = round % 2;
        struct sigaction first = {.sa_handler = nested, .sa_flags = SA_ONSTACK}, second = {.sa_handler = jump};
        volatile int one, other;
        int pair[2];
        sigaction(SIGUSR1, &first, NULL);
        sigaction(SIGUSR2, &second, NULL);
        make_pair(listener, port, pair, warmed);
        one = pair[0], other = pair[1];
        steps = 0, inner = 0, leaves_both = round / 2 % 2;
        if (sigsetjmp(way, 1) == 0) {
            arm(&timer, SIGUSR1);
            wait_in(RECV, one, -1, -1);
        }
        timer_delete(timer), timer_delete(second_timer);
        note("nested: %d steps", steps);
        close(one);
        await_end(other, "nested", warmed);
    }
    char byte = 'q';
    note("the connection of the handlers: %d", send(echo[0], &byte, 1, 0) == 1 && recv(echo[1], &byte, 1, 0) == 1);
    close(echo[0]);
    await_end(echo[1], "that of the handlers", 1);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
