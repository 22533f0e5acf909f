/* syscall(): what the library knows, and what it does not. */
#include "tell.h"
#include "pair.h"
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/epoll.h>
#include <sys/uio.h>

static volatile int ran;

static void handler(int signo) {
    ran += signo;
}

int main(void) {
    int ends[2];
    char bytes[16] = "abcdefghijklmno";
    tcp_pair(ends);
    warm_up(ends);
    struct iovec part = {bytes, 4};
    TELL(syscall(SYS_write, ends[0], bytes, 8));
    TELL(syscall(SYS_read, ends[1], bytes, 4));
    TELL(syscall(SYS_preadv2, ends[1], &part, 1, -1L, -1L, 0));
    TELL(syscall(SYS_sendto, ends[0], bytes, 3, 0, NULL, 0));
    TELL(syscall(SYS_recvfrom, ends[1], bytes, 10, 0, NULL, NULL));
    struct pollfd entry = {ends[0], POLLOUT, 0};
    TELL(syscall(SYS_poll, &entry, 1, 0));
    TELL(syscall(SYS_read, 999, bytes, 4));
    TELL(syscall(100000));
    TELL(syscall(-1L));
    TELL(syscall(SYS_getpid) == getpid());
    void *map = (void *)syscall(SYS_mmap, NULL, 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    TELL(map != MAP_FAILED && ((char *)map)[4095] == 0);
    int set = syscall(SYS_epoll_create1, 0);
    struct epoll_event event = {.events = EPOLLOUT, .data.u32 = 5};
    TELL(syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, ends[0], &event));
    TELL(syscall(SYS_epoll_pwait, set, &event, 1, 0, NULL, 8));
    TELL(syscall(SYS_epoll_wait, set, &event, 1, 0));
    TELL(syscall(SYS_dup2, ends[0], 77));
    TELL(syscall(SYS_write, 77, bytes, 5));
    TELL(syscall(SYS_read, ends[1], bytes, 16));
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action, old;
    struct sigaction known;
    signal(SIGUSR1, handler);
    TELL(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8));
    printf("the program's handler %d\n", action.handler == handler);
    TELL(syscall(SYS_rt_sigaction, SIGUSR2, &action, &old, 8));
    printf("was default %d\n", old.handler == SIG_DFL);
    sigaction(SIGUSR2, NULL, &known);
    printf("is set %d\n", known.sa_handler == handler);
    raise(SIGUSR2);
    printf("ran %d\n", ran == SIGUSR2);
    TELL(syscall(SYS_close_range, 78, 100, 0));
    TELL(syscall(SYS_close, 77));
    TELL(syscall(SYS_close, 77));
    TELL(syscall(SYS_shutdown, ends[0], SHUT_WR));
    TELL(syscall(SYS_read, ends[1], bytes, 16));
    return 0;
}
