/* A thread is cancelled in a call that blocks on a fresh connection, in one that has just succeeded, and with cancellation
 * put off; it cleans up, others do not notice, and the connection lives on. */
#include "behaviour.h"

static int the_fd, set, cleaned, received;

static void clean(void *unused UNUSED) { __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST); }

static void block_receive(void) {
    char byte;
    recv(the_fd, &byte, 1, 0);
}

static void block_read(void) {
    char byte;
    if (read(the_fd, &byte, 1) < 0)
        note("read failed");
}

static void block_message(void) {
    char bytes[2];
    struct iovec parts[2] = {{bytes, 1}, {bytes + 1, 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    recvmsg(the_fd, &message, 0);
}

static void block_peek(void) {
    char byte;
    recv(the_fd, &byte, 1, MSG_PEEK);
}

static void block_timed(void) {
    char byte;
    recv(the_fd, &byte, 1, MSG_WAITALL);
}

static void block_send(void) {
    static char bytes[65536];
    for (;;)
        send(the_fd, bytes, sizeof bytes, MSG_NOSIGNAL);
}

static void block_poll(void) {
    struct pollfd entry = {the_fd, POLLIN, 0};
    poll(&entry, 1, -1);
}

static void block_select(void) {
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(the_fd, &reads);
    select(the_fd + 1, &reads, NULL, NULL, NULL);
}

static void block_epoll(void) {
    struct epoll_event event;
    epoll_wait(set, &event, 1, -1);
}

/* Calls that find something are points of cancellation, too. */
static void never_block(void) {
    char byte;
    for (;;)
        if (recv(the_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
            __atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
}

static void *cancelled(void *body) {
    pthread_cleanup_push(clean, NULL);
    ((void (*)(void))body)();
    note("it went on");
    pthread_cleanup_pop(0);
    return NULL;
}

/* Is cancelled while that is put off: its call goes on, and the next point after it is allowed again ends the thread. */
static void *late(void *unused UNUSED) {
    char byte = 0;
    pthread_cleanup_push(clean, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    ssize_t got = recv(the_fd, &byte, 1, 0);
    __atomic_store_n(&received, got == 1 && byte == 'l', __ATOMIC_SEQ_CST);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    recv(the_fd, &byte, 1, MSG_DONTWAIT);
    pthread_cleanup_pop(0);
    return NULL;
}

/* Is not cancelled. */
static void *bystander(void *unused UNUSED) {
    char byte = 0;
    ssize_t got = recv(the_fd, &byte, 1, 0);
    return got == 1 && byte == 'b' ? "well" : NULL;
}

static void end(pthread_t thread) {
    void *result;
    DO(pthread_cancel(thread));
    pthread_join(thread, &result);
    note("cancelled: %d, cleaned: %d", result == PTHREAD_CANCELED, __atomic_exchange_n(&cleaned, 0, __ATOMIC_SEQ_CST));
}

static void cancel_in(void (*body)(void)) {
    pthread_t thread;
    pthread_create(&thread, NULL, cancelled, (void *)body);
    pause_ms(20);
    end(thread);
}

static void cancel_at_once(void (*body)(void)) {
    pthread_t thread;
    pthread_create(&thread, NULL, cancelled, (void *)body);
    end(thread);
}

static void server(int fd) {
    void (*bodies[])(void) = {block_receive, block_read, block_message, block_peek, block_poll, block_select, block_epoll};
    struct epoll_event event = {.events = EPOLLIN};
    struct timeval time = {PATIENCE_MS / 1000, 0};
    pthread_t thread, other;
    void *result;
    the_fd = fd, set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    for (int moved = 0; moved < 2; moved++) {
        for (int i = 0; i < 7; i++) {
            cancel_in(bodies[i]);
            cancel_at_once(bodies[i]);
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
        cancel_in(block_timed);
        time.tv_sec = 0;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
        time.tv_sec = PATIENCE_MS / 1000;

        pthread_create(&thread, NULL, late, NULL);
        pause_ms(20);
        DO(pthread_cancel(thread));
        pause_ms(20);
        meet();
        pthread_join(thread, &result);
        note("late: received %d, cancelled %d, cleaned %d", received, result == PTHREAD_CANCELED, cleaned);
        received = cleaned = 0;

        pthread_create(&other, NULL, bystander, NULL);
        pause_ms(10);
        cancel_in(block_poll);
        meet();
        pthread_join(other, &result);
        note("the bystander: %s", result ? (char *)result : "disturbed");

        pthread_create(&thread, NULL, cancelled, (void *)never_block);
        meet();
        while (!__atomic_load_n(&received, __ATOMIC_SEQ_CST))
            pause_ms(1);
        end(thread);
        received = 0;
        char byte;
        DO(recv(fd, &byte, 1, 0));
        meet();
        warm(fd);
    }
    cancel_in(block_send);
    DO(shutdown(fd, SHUT_WR));
    meet();
    DO(close(fd));
}

static void client(int fd) {
    static char bytes[65536];
    for (int moved = 0; moved < 2; moved++) {
        for (const char *letter = "lbn"; *letter; letter++) {
            meet();
            if (send(fd, letter, 1, 0) != 1)
                note("not sent");
        }
        meet();
        warm(fd);
    }
    meet();
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    note("the end: %zd", got);
    DO(close(fd));
}
