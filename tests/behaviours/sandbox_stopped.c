/* A program with unread bytes takes all calls but read and write from itself, while its peer is stopped, or computes and
 * makes no call: it reads them, and both go on when the peer does. */
#define OWN_ROLES
#include "behaviour.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>

enum { UNREAD = 50000, TURNS = 20, AWAY_MS = 500 };

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

static void role(const char *name, int port) {
    int fd = dial(AF_INET, port), well = 1;
    pid_t server = atoi(getenv("SERVER"));
    unsigned char bytes[64];
    warm(fd);
    if (!strcmp(name, "stop")) {
        /* It does not last as long as the server is stopped. */
        if (fork() == 0) {
            close(fd);
            await_stop(server);
            pause_ms(AWAY_MS);
            kill(server, SIGCONT);
            _exit(0);
        }
    }
    await_bytes(fd, UNREAD);
    fill(bytes, 0, sizeof bytes);
    if (!strcmp(name, "stop")) {
        pause_ms(20);
        kill(server, SIGSTOP);
    }
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(4);
    well &= is_read(fd, 0, UNREAD);
    for (int i = 0; i < TURNS; i++)
        well &= write(fd, bytes, sizeof bytes) == sizeof bytes && is_read(fd, 0, sizeof bytes);
    well &= is_read(fd, 0, UNREAD);
    syscall(SYS_exit, well ? 6 : 5);
}

static int serve(int listener, int computes) {
    unsigned char bytes[64];
    int fd = accept_one(listener), turns = 0;
    warm(fd);
    send_pattern(fd, 0, UNREAD);
    for (int64_t end = now_us() + (computes ? AWAY_MS * 1000 : 0); now_us() < end;)
        ;
    for (int i = 0; i < TURNS && recv(fd, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes; i++)
        turns += send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes;
    send_pattern(fd, 0, UNREAD);
    turns += recv(fd, bytes, 1, 0) == 0;
    close(fd);
    return turns;
}

static void behaviour(void) {
    const char *ways[] = {"stop", "compute"};
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int way = 0; way < 2; way++) {
        char text[16];
        pid_t server = fork();
        if (server == 0)
            _exit(serve(listener, way == 1));
        snprintf(text, sizeof text, "%d", server);
        setenv("SERVER", text, 1);
        pid_t client = start_role(ways[way], port);
        note_end("the client", client);
        note_end("the server", server);
    }
}
