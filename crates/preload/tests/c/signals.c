/* Handlers: what sigaction says of them, what they are given, what they interrupt. */
#include "tell.h"
#include "pair.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int ends[2];
static volatile sig_atomic_t ran, code, value;
static volatile pid_t sender;

static void plain(int signo) {
    ran += signo;
}

static void informed(int signo, siginfo_t *info, void *context) {
    ran += signo;
    code = info->si_code;
    value = info->si_value.sival_int;
    sender = info->si_pid;
    (void)context;
}

static volatile pid_t reader;
static volatile int reading;

/* Whether the reading thread sleeps in its call: it is seen asleep many times in a row. */
static void await_sleep(void) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", reader);
    for (int seen = 0; seen < 20; usleep(1000)) {
        FILE *file = fopen(path, "r");
        if (!fgets(line, sizeof line, file))
            abort();
        fclose(file);
        seen = reading && strstr(line, ") S ") ? seen + 1 : 0;
    }
}

static void *kick(void *restarts) {
    for (int i = 1; i <= (restarts ? 3 : 1); i++) {
        await_sleep();
        syscall(SYS_tgkill, getpid(), reader, SIGUSR1);
        while (ran < i * SIGUSR1)
            usleep(1000);
    }
    /* A call that goes on after a handler finds a byte; one that ended leaves it for the next. */
    if (restarts)
        await_sleep();
    return (void *)(long)write(ends[0], "x", 1);
}

static void blocked_read(int flags) {
    struct sigaction action = {.sa_handler = plain, .sa_flags = flags};
    pthread_t thread;
    char byte;
    ran = 0;
    reader = gettid();
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, kick, (void *)(long)(flags & SA_RESTART));
    reading = 1;
    TELL(read(ends[1], &byte, 1));
    reading = 0;
    pthread_join(thread, NULL);
    printf("restart %d, ran %d\n", flags & SA_RESTART, ran / SIGUSR1);
    if (!(flags & SA_RESTART))
        TELL(read(ends[1], &byte, 1));
}

/* The other end has closed and knows no more of the connection. */
static void await_reset(int fd) {
    struct tcp_info info;
    socklen_t len = sizeof info;
    send(fd, "x", 1, MSG_NOSIGNAL);
    while (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state != TCP_CLOSE)
        usleep(1000);
}

static void say(const char *what, struct sigaction *old) {
    const char *who = old->sa_handler == plain      ? "plain"
                      : old->sa_sigaction == informed ? "informed"
                      : old->sa_handler == SIG_DFL    ? "default"
                      : old->sa_handler == SIG_IGN    ? "ignored"
                                                      : "unknown";
    printf("%s: %s, flags %x, blocks USR2 %d\n", what, who, old->sa_flags, sigismember(&old->sa_mask, SIGUSR2));
}

int main(void) {
    struct sigaction old, action = {.sa_sigaction = informed, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaddset(&action.sa_mask, SIGUSR2);
    TELL(sigaction(SIGRTMIN, &action, &old));
    say("first", &old);
    TELL(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 77}));
    printf("ran %d code %d value %d sender %d\n", ran == SIGRTMIN, code, value, sender == getpid());
    TELL(sigaction(SIGRTMIN, NULL, &old));
    say("asked", &old);
    action = (struct sigaction){.sa_handler = plain, .sa_flags = SA_RESETHAND};
    TELL(sigaction(SIGRTMIN, &action, &old));
    say("second", &old);
    ran = 0;
    TELL(raise(SIGRTMIN));
    printf("ran once %d\n", ran == SIGRTMIN);
    TELL(sigaction(SIGRTMIN, NULL, &old));
    say("used up", &old);
    TELL(signal(SIGUSR2, plain) == SIG_DFL);
    TELL(signal(SIGUSR2, SIG_IGN) == plain);
    TELL(signal(SIGUSR2, plain) == SIG_IGN);
    sigaction(SIGUSR2, NULL, &old);
    say("by signal", &old);
    TELL(siginterrupt(SIGUSR2, 1));
    sigaction(SIGUSR2, NULL, &old);
    say("interrupting", &old);
    TELL(signal(SIGUSR2, plain) == plain);
    sigaction(SIGUSR2, NULL, &old);
    say("by signal again", &old);
    TELL(sigset(SIGUSR2, plain) == plain);
    sigaction(SIGUSR2, NULL, &old);
    say("by sigset", &old);
    TELL(sysv_signal(SIGUSR2, plain) == plain);
    sigaction(SIGUSR2, NULL, &old);
    say("by sysv_signal", &old);
    TELL(sigaction(SIGKILL, &action, NULL));
    TELL(sigaction(99, &action, NULL));
    TELL(signal(99, plain) == SIG_ERR);
    tcp_pair(ends);
    warm_up(ends);
    blocked_read(SA_RESTART);
    blocked_read(0);
    ran = 0;
    action = (struct sigaction){.sa_handler = plain};
    sigaction(SIGPIPE, &action, NULL);
    close(ends[1]);
    await_reset(ends[0]);
    TELL(send(ends[0], "x", 1, MSG_NOSIGNAL));
    printf("pipe signals %d\n", ran / SIGPIPE);
    TELL(write(ends[0], "x", 1));
    printf("pipe signals %d\n", ran / SIGPIPE);
    return 0;
}
