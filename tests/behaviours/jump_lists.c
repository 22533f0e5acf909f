/* A handler jumps out of a poll of many descriptors, again and again: nothing of those calls stays in memory. */
#include "behaviour.h"
#include <setjmp.h>

enum { JUMPS = 700, FIRST = 100, ENTRIES = 64, MOST_KIB = 256 };

static sigjmp_buf way;

static void jump(int number UNUSED) {
    siglongjmp(way, 1);
}

/* What the process has in memory of its own, in KiB. */
static long data_kib(void) {
    char line[128];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmData: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

static void exchange(int pair[2]) {
    char byte = 'w';
    for (int turn = 0; turn < 2; turn++)
        if (send(pair[turn], &byte, 1, 0) != 1 || recv(pair[!turn], &byte, 1, 0) != 1)
            die("exchange");
}

/* Waits that are left in the middle; how much has been added to the memory by all but the first of them. */
static void leave_polls(const char *which, struct pollfd *entries, int count) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec soon = {.it_value.tv_nsec = 300000};
    timer_t timer;
    volatile long before = 0;
    volatile int told = 0;
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
        die("timer");
    for (volatile int i = 0; i < JUMPS; i++) {
        if (i == FIRST)
            before = data_kib();
        if (sigsetjmp(way, 1) == 0) {
            timer_settime(timer, 0, &soon, NULL);
            told += poll(entries, count, -1) != -1;
        }
    }
    timer_delete(timer);
    note("%s: told %d, memory grows: %d", which, told, data_kib() - before > MOST_KIB);
}

static void server(int fd UNUSED) {
    struct pollfd entries[ENTRIES];
    int pairs[ENTRIES / 2][2], port, listener = listen_somewhere(AF_INET, &port);
    signal(SIGUSR1, jump);
    for (int i = 0; i < ENTRIES / 2; i++) {
        pairs[i][0] = dial(AF_INET, port), pairs[i][1] = accept_one(listener);
        for (int end = 0; end < 2; end++)
            entries[2 * i + end] = (struct pollfd){pairs[i][end], POLLIN, 0};
    }
    leave_polls("young", entries, ENTRIES);
    for (int i = 0; i < ENTRIES / 2; i++)
        for (int turn = 0; turn < 40; turn++)
            exchange(pairs[i]);
    leave_polls("many", entries, ENTRIES);
    leave_polls("one", entries, 1);
    exchange(pairs[0]);
    note("poll: %d", poll(entries, ENTRIES, 0));
}

static void client(int fd UNUSED) {}
