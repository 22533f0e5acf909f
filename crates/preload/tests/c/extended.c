/* Extended sockets between two processes, and between two threads of one. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "sidestep.h"

#define CHECK(what) check(!!(what), #what, __LINE__)
#define FAILS(what, number) fails((what) == -1, number, #what, __LINE__)

static void check(int holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "line %d: %s: errno %d, %s\n", line, what, errno, ss_error());
        abort();
    }
}

static void fails(int failed, int number, const char *what, int line) {
    check(failed && errno == number, what, line);
}

static struct ss_completion next(int queue, int kind) {
    struct ss_completion one;
    do {
        CHECK(ss_queue_wait(queue, &one, 1, 30000) == 1);
    } while (one.kind == SS_EXPORT && kind != SS_EXPORT);
    CHECK(one.kind == kind);
    return one;
}

static int enabled(int fd) {
    int queue = ss_queue_create();
    CHECK(queue >= 0);
    CHECK(ss_enable(fd, queue, 30000) == 0);
    FAILS(ss_enable(fd, queue, 0), EBUSY);
    return queue;
}

enum { ROUNDS = 400 };

/* Owns the memory. */
static void owner(int fd) {
    int queue = enabled(fd);
    ss_region region = ss_register(NULL, 4096, SS_ALL), table = ss_register(NULL, 4096, SS_READ);
    static uint64_t own[512];
    ss_region served = ss_register(own, sizeof own, SS_READ | SS_WRITE);
    CHECK(region && table && served);
    volatile uint64_t *words = ss_address(region);
    strcpy(ss_address(table), "read only");
    CHECK(ss_export(fd, region, SS_ALL, 1) == 0 && ss_export(fd, table, SS_READ, 2) == 0);
    CHECK(ss_export(fd, served, SS_READ | SS_WRITE, 3) == 0);
    FAILS(ss_export(fd, table, SS_WRITE, 0), EACCES);
    FAILS(ss_export(fd, 99, SS_READ, 0), EINVAL);

    /* Memory of the program is imported while its owner is in a call. */
    CHECK(next(queue, SS_NOTICE).token == 11);

    struct ss_piece pieces[2] = {{region, 1024, 5}, {region, 2048, 100}};
    CHECK(ss_post_recv(fd, pieces, 2, 7) == 0);
    FAILS(ss_deregister(region), EBUSY);

    /* What was put before a byte was sent is there when it is received. */
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char byte;
        CHECK(recv(fd, &byte, 1, 0) == 1);
        CHECK(words[8] == round);
        words[9] = round;
        CHECK(send(fd, &byte, 1, 0) == 1);
    }
    struct ss_completion one = next(queue, SS_RECEIVE);
    CHECK(one.token == 7 && one.length == 11 && one.error == 0 && one.fd == fd);
    CHECK(!memcmp((char *)words + 1024, "hello", 5) && !memcmp((char *)words + 2048, " world", 6));

    /* The queue is a descriptor; a notice comes when memory of the program was written. */
    struct pollfd ready = {.fd = queue, .events = POLLIN};
    CHECK(poll(&ready, 1, 30000) == 1 && ready.revents == POLLIN);
    one = next(queue, SS_NOTICE);
    CHECK(one.token == 4711 && own[3] == 33);
    CHECK(ss_queue_poll(queue, &one, 1) == 0);

    /* A child has none of it, and disturbs nothing. */
    pid_t child = fork();
    if (child == 0) {
        FAILS(ss_notify(fd, 1), ENOTCONN);
        close(fd);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(ss_deregister(table) == 0);
    CHECK(ss_notify(fd, 1) == 0);
    one = next(queue, SS_CLOSED);
    CHECK(one.error == ECONNRESET);
    FAILS(ss_notify(fd, 1), ECONNRESET);
    CHECK(ss_deregister(region) == 0 && ss_deregister(served) == 0);
    CHECK(close(queue) == 0 && close(fd) == 0);
}

static void user(int fd) {
    int queue = enabled(fd);
    struct ss_imported about;
    ss_remote region = ss_import(fd, &about, 30000);
    CHECK(region && about.tag == 1 && about.length == 4096 && about.rights == SS_ALL && about.direct);
    ss_remote table = ss_import(fd, &about, 30000);
    CHECK(table && about.tag == 2 && about.rights == SS_READ && about.direct);
    ss_remote served = ss_import(fd, NULL, 30000);
    CHECK(served && ss_notify(fd, 11) == 0);
    char text[10];
    CHECK(ss_get(fd, table, 0, text, sizeof text) == 0 && !strcmp(text, "read only"));
    FAILS(ss_put(fd, table, 0, "x", 1), EACCES);
    CHECK(strstr(ss_error(), "read"));
    FAILS(ss_get(fd, table, 4090, text, sizeof text), EINVAL);
    FAILS(ss_get(fd, table, UINT64_MAX, text, 1), EINVAL);
    FAILS(ss_get(fd, 99, 0, text, 1), EINVAL);
    FAILS(ss_get(queue, table, 0, text, 1), ENOTCONN);

    uint64_t old;
    CHECK(ss_fetch_add(fd, region, 0, 5, &old) == 0 && old == 0);
    CHECK(ss_compare_swap(fd, region, 0, 5, 6, &old) == 0 && old == 5);
    CHECK(ss_compare_swap(fd, region, 0, 5, 7, &old) == 0 && old == 6);
    FAILS(ss_fetch_add(fd, region, 3, 1, &old), EINVAL);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char byte = 'x';
        uint64_t seen;
        CHECK(ss_put(fd, region, 64, &round, 8) == 0);
        CHECK(send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1);
        CHECK(ss_get(fd, region, 72, &seen, 8) == 0 && seen == round);
    }
    ss_region own = ss_register(NULL, 65536, 0);
    char *bytes = ss_address(own);
    CHECK(own && bytes);
    strcpy(bytes, "hello world");
    struct ss_piece pieces[2] = {{own, 0, 6}, {own, 6, 5}};
    CHECK(ss_post_send(fd, pieces, 2, 1) == 0);
    CHECK(next(queue, SS_SEND).token == 1);
    uint64_t value = 33;
    CHECK(ss_put(fd, served, 24, &value, 8) == 0);
    CHECK(ss_notify(fd, 4711) == 0);
    CHECK(next(queue, SS_NOTICE).token == 1);
    FAILS(ss_get(fd, table, 0, text, 1), ESTALE);
    struct ss_piece whole = {own, 0, 4096};
    CHECK(ss_post_get(fd, region, 0, &whole, 1, 2) == 0 && ss_fence(fd) == 0);
    CHECK(next(queue, SS_GET).length == 4096 && !memcmp(bytes + 1024, "hello", 5));
    /* A large one, that goes in parts. */
    CHECK(ss_get(fd, region, 0, bytes + 8192, 4096) == 0 && !memcmp(bytes, bytes + 8192, 4096));
    CHECK(ss_release(table) == 0);
    FAILS(ss_release(table), EINVAL);
    CHECK(close(fd) == 0);
    FAILS(ss_notify(fd, 1), ENOTCONN);
}

static void *thread(void *fd) {
    owner((int)(intptr_t)fd);
    return NULL;
}

int main(void) {
    int ends[2];
    tcp_pair(ends);
    /* Nobody at the other end: the socket stays as it was. */
    int queue = ss_queue_create();
    FAILS(ss_enable(ends[0], queue, 20), ETIMEDOUT);
    FAILS(ss_enable(queue, queue, 20), ENOTSOCK);
    FAILS(ss_enable(ends[0], ends[1], 20), EBADF);
    warm_up(ends);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        user(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    owner(ends[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    tcp_pair(ends);
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, thread, (void *)(intptr_t)ends[0]));
    user(ends[1]);
    CHECK(!pthread_join(other, NULL));
    puts("extended");
    return 0;
}
