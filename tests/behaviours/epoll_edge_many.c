/* A server that lives on edges, as busy ones do: it writes until a write is refused or takes a part, and writes on when it is
 * told of space, and not before. Many connections at once, whose first large answers crowd one another. */
#define OWN_ROLES
#include "behaviour.h"

enum { GENERATIONS = 3, MANY = 48, ROUNDS = 5, SMALL_ROUNDS = 3, LARGE = 300000 };

static size_t length_of(int round) { return round < SMALL_ROUNDS ? 60 : LARGE; }

/* Asks on all connections, and reads the answers one after another. */
static void ask(int port) {
    static unsigned char piece[PATTERN_PIECE];
    int fds[MANY];
    for (int i = 0; i < MANY; i++)
        fds[i] = dial(AF_INET, port);
    for (int round = 0; round < ROUNDS; round++) {
        char request[8] = "request";
        for (int i = 0; i < MANY; i++)
            if (send(fds[i], request, sizeof request, 0) != sizeof request)
                note("send: %s", error_name(errno));
        for (int i = 0; i < MANY; i++)
            for (size_t got = 0; got < length_of(round);) {
                size_t want = length_of(round) - got;
                ssize_t count = recv(fds[i * 7 % MANY], piece, want < sizeof piece ? want : sizeof piece, 0);
                if (count <= 0)
                    die("recv");
                if (right(piece, got, count) != (size_t)count)
                    note("a wrong byte of connection %d in round %d", i, round);
                got += count;
            }
    }
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
}

static void role(const char *name UNUSED, int port) {
    for (int i = 0; i < GENERATIONS; i++)
        ask(port);
}

struct connection {
    int fd, round;
    size_t asked, sent;
    int told_full;
};

/* Two parts in every second round: a list takes another way through the library. */
static ssize_t write_some(struct connection *one, size_t want) {
    static unsigned char piece[PATTERN_PIECE];
    want = want < sizeof piece ? want : sizeof piece;
    fill(piece, one->sent, want);
    struct iovec parts[2] = {{piece, want / 2}, {piece + want / 2, want - want / 2}};
    return one->round % 2 ? writev(one->fd, parts, 2) : write(one->fd, piece, want);
}

static void answer(struct connection *one) {
    while (one->asked >= 8 && one->sent < length_of(one->round)) {
        size_t want = length_of(one->round) - one->sent;
        ssize_t count = write_some(one, want);
        if (count < 0 && errno != EAGAIN)
            die("write");
        one->sent += count > 0 ? count : 0;
        if (count < 0 || (size_t)count < (want < PATTERN_PIECE ? want : PATTERN_PIECE)) {
            one->told_full = 1;
            return;
        }
    }
    if (one->asked >= 8)
        one->asked -= 8, one->sent = 0, one->round++;
}

static void serve(int listener) {
    static struct connection all[MANY];
    int ended = 0, answers = 0, set = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < MANY; i++) {
        all[i] = (struct connection){.fd = accept_one(listener)};
        set_nonblocking(all[i].fd, 1);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = i};
        if (epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event) < 0)
            die("epoll_ctl");
    }
    while (ended < MANY) {
        struct epoll_event events[16];
        int count = epoll_wait(set, events, 16, PATIENCE_MS);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            for (int i = 0; i < MANY; i++)
                if (all[i].fd >= 0 && all[i].told_full)
                    note("connection %d is not told of space in round %d, at %zu", i, all[i].round, all[i].sent);
            die("nobody is told of anything");
        }
        for (int i = 0; i < count; i++) {
            struct connection *one = &all[events[i].data.u32];
            if (one->fd < 0)
                continue;
            if (events[i].events & EPOLLOUT)
                one->told_full = 0;
            char bytes[64];
            ssize_t got = events[i].events & EPOLLIN ? recv(one->fd, bytes, sizeof bytes, 0) : -1;
            if (got == 0) {
                close(one->fd), one->fd = -1, ended++, answers += one->round;
                continue;
            }
            if (got > 0)
                one->asked += got;
            if (!one->told_full)
                answer(one);
        }
    }
    DO(answers);
    close(set);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    for (int i = 0; i < GENERATIONS; i++)
        serve(listener);
    note_end("the client", child);
}
