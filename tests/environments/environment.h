/* Hostile surroundings of a behaviour program, as far as they are made inside it. `enter` (enter.c) makes the others and sets
 * BEHAVIOUR_ENVIRONMENT to the words of all of them, separated by commas:
 *
 *   storm=restart|interrupt|fork   while a thread works in one of the parts below, a signal comes 50 to 200 us after the handler
 *                                  of the last one has ended, with or without SA_RESTART; the handler uses descriptors of its
 *                                  own, or forks (after 2 to 5 ms). On a busy machine, too, the thread goes on between two
 *   jump                           waits of those parts are first left by siglongjmp from a handler, several times
 *   stranger=UID                   the client of a pair becomes another user before it connects
 *   closed                         standard descriptors are closed, and transcripts go to CLOSED_OUT
 *   seed=N                         chooses times
 *
 * The parts are the ones whose outcome no interruption changes: the helpers of behaviour.h, which go on after EINTR, and
 * calls that never block. So the transcript is that of a quiet run. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ENVIRONMENT_MAY static __attribute__((unused))

/* Out of the way of the program's descriptors. */
enum { CLOSED_OUT = 190, STORM_FD, STORM_DUPLICATES };

/* The value of a word of the environment; empty for a word without one, NULL if it is not there. */
ENVIRONMENT_MAY const char *environment_word(const char *word) {
    static __thread char value[64];
    const char *at = getenv("BEHAVIOUR_ENVIRONMENT");
    size_t length = strlen(word);
    while (at && *at) {
        size_t whole = strcspn(at, ",");
        if (!strncmp(at, word, length) && (length == whole || at[length] == '=')) {
            size_t rest = length == whole ? 0 : whole - length - 1;
            if (rest >= sizeof value)
                rest = sizeof value - 1;
            memcpy(value, at + length + 1, rest);
            value[rest] = 0;
            return value;
        }
        at += whole + (at[whole] == ',');
    }
    return NULL;
}

static enum { NO_STORM, RESTARTING, INTERRUPTING, FORKING } storm_kind;
static int jumps;
static uint32_t environment_random = 1;

static uint32_t random_below(uint32_t bound) {
    environment_random = environment_random * 1664525 + 1013904223;
    return (environment_random >> 8) % bound;
}

/* The timer of a thread. A child of fork has none of its parent's. */
static __thread struct {
    timer_t timer;
    pid_t process;
    int depth;
    long gap_us;
} storm;
static __thread sigjmp_buf jump_target;
static __thread volatile sig_atomic_t jump_allowed;

/* The time until the next signal of this thread; none at all with 0. */
static void storm_set(long us) {
    int error = errno;
    if (storm.process != getpid()) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 5};
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        if (timer_create(CLOCK_MONOTONIC, &event, &storm.timer) < 0) {
            perror("timer_create");
            exit(3);
        }
        storm.process = getpid();
    }
    struct itimerspec times = {{0, 0}, {0, us * 1000}};
    timer_settime(storm.timer, 0, &times, NULL);
    errno = error;
}

static void storm_handler(int number __attribute__((unused))) {
    int error = errno;
    if (jump_allowed) {
        jump_allowed = 0;
        siglongjmp(jump_target, 1);
    }
    if (storm_kind == FORKING) {
        pid_t child = _Fork();
        if (child == 0)
            _exit(0);
        while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    } else {
        uint64_t count = 1;
        int fd = fcntl(STORM_FD, F_DUPFD_CLOEXEC, STORM_DUPLICATES);
        struct pollfd entry = {fd, POLLIN | POLLOUT, 0};
        if (fd >= 0 && poll(&entry, 1, 0) == 1 && write(fd, &count, sizeof count) == sizeof count)
            while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
                ;
        close(fd);
    }
    if (storm.depth > 0)
        storm_set(storm.gap_us);
    errno = error;
}

ENVIRONMENT_MAY void storm_on(void) {
    if (storm_kind == NO_STORM || storm.depth++ > 0)
        return;
    storm.gap_us = storm_kind == FORKING ? 2000 + random_below(3000) : 50 + random_below(150);
    storm_set(storm.gap_us);
}

ENVIRONMENT_MAY void storm_off(void) {
    if (storm_kind != NO_STORM && --storm.depth == 0)
        storm_set(0);
}

/* Begins a storm for a call that never blocks, by its text. */
ENVIRONMENT_MAY int storm_on_for(const char *call) {
    static const char *const calls[] = {"shutdown(", "setsockopt(", "getsockopt(", "dup", "fcntl(", "ioctl(",
                                        "epoll_ctl(", "accept_one(", "listen("};
    if (storm_kind == NO_STORM)
        return 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strncmp(call, calls[i], strlen(calls[i]))) {
            storm_on();
            return 1;
        }
    return 0;
}

/* Waits for something to read and is thrown out of the wait, in several ways. Nothing is taken from the stream. */
ENVIRONMENT_MAY void jump_out(int fd) {
    for (volatile int way = 0; jumps && way < 4; way++) {
        if (sigsetjmp(jump_target, 1) == 0) {
            struct pollfd entry = {fd, POLLIN, 0};
            char byte;
            fd_set set;
            FD_ZERO(&set);
            if (fd < FD_SETSIZE)
                FD_SET(fd, &set);
            jump_allowed = 1;
            storm_set(50 + random_below(500));
            if (way == 0)
                poll(&entry, 1, -1);
            else if (way == 1)
                select(fd < FD_SETSIZE ? fd + 1 : 0, &set, NULL, NULL, NULL);
            else
                recv(fd, &byte, 1, way == 2 ? MSG_PEEK : MSG_PEEK | MSG_WAITALL);
            jump_allowed = 0;
        }
        storm_set(0);
    }
}

/* To be called first in every process of the program. */
ENVIRONMENT_MAY void environment_begin(int is_client) {
    const char *word = environment_word("seed");
    if (word)
        environment_random = (uint32_t)strtoul(word, NULL, 10) ^ (uint32_t)is_client;
    if ((word = environment_word("stranger")) && is_client) {
        uid_t user = (uid_t)atoi(word);
        if (setgid(user) < 0 || setuid(user) < 0) {
            perror("setuid");
            exit(3);
        }
    }
    jumps = environment_word("jump") != NULL;
    if ((word = environment_word("storm")))
        storm_kind = !strcmp(word, "fork") ? FORKING : !strcmp(word, "interrupt") ? INTERRUPTING : RESTARTING;
    if (!jumps && storm_kind == NO_STORM)
        return;
    if (fcntl(STORM_FD, F_GETFD) < 0) {
        int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (fd < 0 || dup3(fd, STORM_FD, O_CLOEXEC) < 0) {
            perror("eventfd");
            exit(3);
        }
        close(fd);
    }
    struct sigaction action = {.sa_handler = storm_handler, .sa_flags = storm_kind == INTERRUPTING ? 0 : SA_RESTART};
    if (sigaction(SIGRTMIN + 5, &action, NULL) < 0) {
        perror("sigaction");
        exit(3);
    }
}

#endif
