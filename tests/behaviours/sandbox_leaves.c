/* A program that has written small messages, which may still be under way, takes all calls but read and write from itself and
 * ends by leaving its only thread: it is gone then, and everything has arrived. */
#define OWN_ROLES
#include "behaviour.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>

enum { SMALL = 64, BURST = 16, ROUNDS = 3 };

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port);
    unsigned char bytes[SMALL];
    warm(fd);
    for (int at = 0; at < BURST; at++)
        send_pattern(fd, at * SMALL, SMALL);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(4);
    ssize_t got = 0;
    for (ssize_t more = 1; got < SMALL && more > 0; got += more > 0 ? more : 0)
        more = read(fd, bytes + got, SMALL - got);
    syscall(SYS_exit, got == SMALL && right(bytes, 0, SMALL) == SMALL ? 6 : 5);
}

static void behaviour(void) {
    static unsigned char bytes[BURST * SMALL];
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = start_role("leave", port);
        int fd = accept_one(listener);
        warm(fd);
        await_bytes(fd, sizeof bytes);
        DO(recv(fd, bytes, sizeof bytes, MSG_WAITALL));
        note("%zu right", right(bytes, 0, sizeof bytes));
        send_pattern(fd, 0, SMALL);
        note_end("the client", child);
        DO(recv(fd, bytes, 1, 0));
        DO(close(fd));
    }
}
