/* A program with unread bytes takes all calls but read and write from itself, while its peer sleeps: both go on. */
#define OWN_ROLES
#include "behaviour.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>

enum { UNREAD = 5000, TURNS = 20 };

static int is_read(int fd, size_t position, size_t length) {
    static unsigned char bytes[UNREAD];
    for (size_t got = 0; got < length;) {
        ssize_t more = read(fd, bytes + got, length - got);
        if (more <= 0)
            return 0;
        got += more;
    }
    return right(bytes, position, length) == length;
}

static void role(const char *name UNUSED, int port) {
    int fd = dial(AF_INET, port), well = 1;
    unsigned char bytes[64];
    warm(fd);
    await_bytes(fd, UNREAD);
    fill(bytes, 0, sizeof bytes);
    pause_ms(20);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(4);
    well &= is_read(fd, 0, UNREAD);
    for (int i = 0; i < TURNS; i++)
        well &= write(fd, bytes, sizeof bytes) == sizeof bytes && is_read(fd, 0, sizeof bytes);
    syscall(SYS_exit, well ? 6 : 5);
}

static void behaviour(void) {
    unsigned char bytes[64];
    int port, listener = listen_somewhere(AF_INET, &port), set = epoll_create1(0);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int how = 0; how < 3; how++) {
        pid_t child = start_role("strict", port);
        int fd = accept_one(listener), turns = 0;
        struct epoll_event event = {.events = EPOLLIN};
        struct pollfd entry = {fd, POLLIN, 0};
        warm(fd);
        if (how == 2)
            DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        send_pattern(fd, 0, UNREAD);
        for (;;) {
            if (how == 1 && poll(&entry, 1, PATIENCE_MS) != 1)
                note("poll told of nothing");
            if (how == 2 && epoll_wait(set, &event, 1, PATIENCE_MS) != 1)
                note("epoll_wait told of nothing");
            if (recv(fd, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
                break;
            turns += send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes;
        }
        DO(turns);
        note_end("the client", child);
        DO(close(fd));
    }
}
