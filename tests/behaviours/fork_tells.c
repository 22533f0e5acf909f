/* One end waits in every way there is, while a child of the other takes the connection over, reads and writes. */
#include "behaviour.h"

enum { PIECE = 100, BULK = 8 << 20 };
enum way { LEVEL, EDGE, POLL, SELECT, BLOCK, WAYS };
static const char *const names[] = {"epoll", "epoll, edges", "poll", "select", "recv"};

static int awaits(int fd, enum way way, int set, int events) {
    struct epoll_event event;
    struct pollfd entry = {fd, events, 0};
    fd_set fds;
    FD_ZERO(&fds);
    FD_SET(fd, &fds);
    switch (way) {
    case LEVEL:
    case EDGE:
        return epoll_wait(set, &event, 1, PATIENCE_MS);
    case POLL:
        return poll(&entry, 1, PATIENCE_MS);
    case SELECT:
        return select(fd + 1, events == POLLIN ? &fds : NULL, events == POLLOUT ? &fds : NULL, NULL,
                      &(struct timeval){PATIENCE_MS / 1000, 0});
    default:
        return 1;
    }
}

/* How many bytes are right, from the first. */
static size_t takes_all(int fd) {
    static unsigned char bytes[PATTERN_PIECE];
    for (size_t done = 0; done < BULK;) {
        size_t most = BULK - done < sizeof bytes ? BULK - done : sizeof bytes;
        ssize_t got = recv(fd, bytes, most, 0);
        if (got <= 0 || right(bytes, done, got) != (size_t)got)
            return done;
        done += got;
    }
    return BULK;
}

/* Sends until there is no room, and then the rest. */
static void sends_all(int fd, enum way way, int set) {
    static unsigned char bytes[PATTERN_PIECE];
    size_t done = 0;
    for (ssize_t sent = 0; sent >= 0 && done < BULK; done += sent > 0 ? sent : 0) {
        fill(bytes, done, sizeof bytes);
        sent = send(fd, bytes, BULK - done < sizeof bytes ? BULK - done : sizeof bytes, MSG_DONTWAIT);
    }
    meet();
    note("%s, space: %d", names[way], awaits(fd, way, set, POLLOUT));
    while (done < BULK) {
        fill(bytes, done, sizeof bytes);
        ssize_t sent = send(fd, bytes, BULK - done < sizeof bytes ? BULK - done : sizeof bytes, 0);
        if (sent < 0)
            die("send");
        done += sent;
    }
}

static int set_of(int fd, enum way way, uint32_t events) {
    struct epoll_event event = {.events = way == EDGE ? events | EPOLLET : events};
    int set = epoll_create1(0);
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("a set");
    return set;
}

static void server(int fd) {
    unsigned char bytes[PIECE];
    for (int way = 0; way < WAYS; way++) {
        for (int child_reads = 0; child_reads < 2; child_reads++) {
            warm(fd);
            meet();
            pause_ms(20);
            pid_t child = fork();
            if (child == 0) {
                fill(bytes, way, PIECE);
                if (child_reads && recv(fd, bytes, PIECE, MSG_DONTWAIT) >= 0)
                    _exit(1);
                _exit(send(fd, bytes, PIECE, 0) != PIECE);
            }
            note_end("the child", child);
            meet();
        }
        warm(fd);
        meet();
        pause_ms(20);
        pid_t child = fork();
        if (child == 0)
            _exit(takes_all(fd) != BULK);
        note_end("the child that reads", child);
        meet();
    }
    DO(close(fd));
}

static void client(int fd) {
    unsigned char bytes[PIECE];
    for (int way = 0; way < WAYS; way++) {
        for (int child_reads = 0; child_reads < 2; child_reads++) {
            warm(fd);
            int set = set_of(fd, way, EPOLLIN);
            meet();
            int ready = awaits(fd, way, set, POLLIN);
            ssize_t got = recv(fd, bytes, PIECE, MSG_WAITALL);
            note("%s: %d, %zd bytes, %zu right", names[way], ready, got, right(bytes, way, PIECE));
            close(set);
            meet();
        }
        warm(fd);
        int set = set_of(fd, way, EPOLLOUT);
        sends_all(fd, way, set);
        close(set);
        meet();
    }
    DO(close(fd));
}
