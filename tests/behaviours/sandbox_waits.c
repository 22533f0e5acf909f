/* A program with unread bytes takes all calls but reads, writes and waits from itself, while its peer is stopped: its waits
 * tell of those bytes, and only of them, and both go on when the peer does. */
#define OWN_ROLES
#include "behaviour.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

enum { UNREAD = 50000, TURNS = 20, AWAY_MS = 500 };

static int set;

/* Whether there is something to read, waited for so many milliseconds. */
static int is_told(const char *how, int fd, int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    struct timeval old_time = {ms / 1000, ms % 1000 * 1000};
    struct pollfd entry = {fd, POLLIN, 0};
    struct epoll_event events[2] = {0};
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(fd, &reads);
    if (!strcmp(how, "poll"))
        return poll(&entry, 1, ms) == 1 && entry.revents == POLLIN;
    if (!strcmp(how, "ppoll"))
        return ppoll(&entry, 1, &time, NULL) == 1 && entry.revents == POLLIN;
    if (!strcmp(how, "select"))
        return select(fd + 1, &reads, NULL, NULL, &old_time) == 1 && FD_ISSET(fd, &reads);
    if (!strcmp(how, "pselect"))
        return pselect(fd + 1, &reads, NULL, NULL, &time, NULL) == 1 && FD_ISSET(fd, &reads);
    return epoll_wait(set, events, !strcmp(how, "epoll") ? 2 : 1, ms) == 1 && events[0].events == EPOLLIN &&
           events[0].data.u64 == 7;
}

static int is_read(const char *how, int fd, size_t position, size_t length) {
    static unsigned char bytes[UNREAD];
    for (size_t got = 0; got < length;) {
        if (!is_told(how, fd, PATIENCE_MS))
            return 0;
        ssize_t more = read(fd, bytes + got, length - got);
        if (more <= 0)
            return 0;
        got += more;
    }
    return right(bytes, position, length) == length && !is_told(how, fd, 0);
}

static void shut_in(void) {
    static const int allowed[] = {
        SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
#ifdef SYS_poll
        SYS_poll, SYS_select, SYS_epoll_wait,
#endif
    };
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter code[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], COUNT - i, 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {COUNT + 3, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        exit(4);
}

static void role(const char *how, int port) {
    int fd = dial(AF_INET, port), well = 1;
    pid_t server = atoi(getenv("SERVER"));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7};
    unsigned char bytes[64];
    warm(fd);
    set = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    if (fork() == 0) {
        close(fd);
        await_stop(server);
        pause_ms(AWAY_MS);
        kill(server, SIGCONT);
        _exit(0);
    }
    await_bytes(fd, UNREAD);
    fill(bytes, 0, sizeof bytes);
    pause_ms(20);
    kill(server, SIGSTOP);
    shut_in();
    well &= is_read(how, fd, 0, UNREAD);
    for (int i = 0; i < TURNS; i++)
        well &= write(fd, bytes, sizeof bytes) == sizeof bytes && is_read(how, fd, 0, sizeof bytes);
    syscall(SYS_exit_group, well ? 6 : 5);
}

static int serve(int listener) {
    unsigned char bytes[64];
    int fd = accept_one(listener), turns = 0;
    warm(fd);
    send_pattern(fd, 0, UNREAD);
    for (int i = 0; i < TURNS && recv(fd, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes; i++)
        turns += send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes;
    turns += recv(fd, bytes, 1, 0) == 0;
    close(fd);
    return turns;
}

static void behaviour(void) {
    const char *ways[] = {"poll", "ppoll", "select", "pselect", "epoll", "epoll of one"};
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    for (int way = 0; way < 6; way++) {
        char text[16];
        pid_t server = fork();
        if (server == 0)
            _exit(serve(listener));
        snprintf(text, sizeof text, "%d", server);
        setenv("SERVER", text, 1);
        pid_t client = start_role(ways[way], port);
        note_end(ways[way], client);
        note_end("the server", server);
    }
}
