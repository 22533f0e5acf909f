/* A program with bytes that it has not read forks, takes all calls but read and write from itself, and reads them then. */
#define OWN_ROLES
#include "behaviour.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>

enum { UNREAD = 1000, REST = 64, AWAY_MS = 500 };

static void role(const char *name, int port) {
    int fd = dial(AF_INET, port);
    unsigned char bytes[UNREAD + REST];
    warm(fd);
    await_bytes(fd, UNREAD);
    pid_t child = fork();
    if (child == 0) {
        /* One that looks at the connection has a part in what was not read. */
        char byte;
        _exit(strcmp(name, "look") || recv(fd, &byte, 1, MSG_PEEK) == 1 ? 0 : 1);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(4);
    ssize_t got = 0;
    fill(bytes, 7, 1);
    if (write(fd, bytes, 1) != 1)
        syscall(SYS_exit, 5);
    for (ssize_t more = 1; got < (ssize_t)sizeof bytes && more > 0; got += more > 0 ? more : 0)
        more = read(fd, bytes + got, sizeof bytes - got);
    syscall(SYS_exit, got == sizeof bytes && right(bytes, 0, sizeof bytes) == sizeof bytes ? 6 : 5);
}

static void behaviour(void) {
    static const char *const ways[] = {"leave", "look"};
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int way = 0; way < 2; way++) {
        pid_t child = start_role(ways[way], port);
        int fd = accept_one(listener);
        warm(fd);
        send_pattern(fd, 0, UNREAD);
        /* Nobody answers here while the client forks and shuts itself in. */
        pause_ms(AWAY_MS);
        receive_pattern(fd, 7, 1);
        send_pattern(fd, UNREAD, REST);
        note_end("the client", child);
        DO(close(fd));
    }
}
