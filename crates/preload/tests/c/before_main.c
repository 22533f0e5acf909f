/* A constructor connects, forks and installs handlers before main; a destructor and atexit use it after. */
#include "tell.h"
#include "pair.h"
#include <signal.h>
#include <sys/wait.h>

static int ends[2];
static volatile int ran;

static void handler(int signo) {
    ran = signo;
}

static void use(const char *when) {
    char byte = 'c';
    long sent = send(ends[0], &byte, 1, 0), got = recv(ends[1], &byte, 1, 0);
    printf("%s: %ld %ld\n", when, sent, got);
    fflush(stdout);
}

__attribute__((constructor(101))) static void early(void) {
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    tcp_pair(ends);
    warm_up(ends);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    printf("early %d\n", ran == SIGUSR1);
    use("early");
}

static void at_exit(void) {
    use("atexit");
}

__attribute__((destructor)) static void late(void) {
    use("late");
}

int main(void) {
    atexit(at_exit);
    use("main");
    return 0;
}
