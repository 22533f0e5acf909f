/* No more signals may be queued (RLIMIT_SIGPENDING), and handlers that use sockets keep coming, with their values. */
#include "behaviour.h"
#include <sys/resource.h>

static int own[2], came, failures, wrong;

static void handler(int number UNUSED, siginfo_t *info, void *context) {
    char byte = 's';
    int error = errno, copy = dup(own[0]);
    if (copy < 0 || send(copy, &byte, 1, 0) != 1 || recv(own[1], &byte, 1, 0) != 1 || close(copy) < 0)
        failures++;
    if (info->si_code != SI_TIMER || info->si_value.sival_int != 77 || context == NULL)
        wrong++;
    came++;
    errno = error;
}

static void server(int fd) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 77};
    struct itimerspec time = {{0, 150000}, {0, 150000}};
    struct rlimit none = {0, 0};
    int port, listener = listen_somewhere(AF_INET, &port), rounds = 0, good = 0;
    unsigned char bytes[64];
    timer_t timer;
    warm(fd);
    own[0] = dial(AF_INET, port), own[1] = accept_one(listener);
    for (int i = 0; i < 40; i++)
        for (int turn = 0; turn < 2; turn++)
            if (send(own[turn], bytes, 1, 0) != 1 || recv(own[!turn], bytes, 1, 0) != 1)
                die("exchange");
    sigaction(SIGRTMIN + 1, &action, NULL);
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 || setrlimit(RLIMIT_SIGPENDING, &none) < 0)
        die("timer");
    timer_settime(timer, 0, &time, NULL);
    for (int64_t end = now_us() + 25000000; (rounds < 200 || came < 50) && now_us() < end; rounds++) {
        struct pollfd entry = {fd, POLLIN, 0};
        int copy = dup(fd), count;
        fill(bytes, rounds, sizeof bytes);
        good += send(copy, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes;
        do
            count = poll(&entry, 1, 5000);
        while (count < 0 && errno == EINTR);
        good += recv(fd, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes && right(bytes, rounds, 64) == 64;
        good += close(copy) == 0;
    }
    timer_delete(timer);
    note("all good: %d, enough: %d, failures: %d, wrong: %d", good == rounds * 3, came >= 50, failures, wrong);
    DO(send(fd, "", 1, 0));
    shutdown(fd, SHUT_WR);
    DO(close(fd));
}

static void client(int fd) {
    unsigned char bytes[64];
    ssize_t got;
    warm(fd);
    while ((got = recv(fd, bytes, sizeof bytes, MSG_WAITALL)) == sizeof bytes)
        if (send(fd, bytes, sizeof bytes, 0) != sizeof bytes)
            die("echo");
    note("at the end: %zd", got);
    DO(close(fd));
}
