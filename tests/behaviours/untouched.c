/* What a call does not tell it does not write: memory of the program behind what was received, events behind those that were told,
 * lists of calls that find nothing, times that are constant. */
#include "behaviour.h"

enum { ROOM = 64, EVENTS = 24 };

/* The marks that are left of what was filled with them, from a place on. */
static int marks_from(const void *memory, size_t from, size_t length) {
    const unsigned char *at = memory;
    int left = 0;
    for (size_t i = from; i < length; i++)
        left += at[i] == 0xa5;
    return left;
}

#define MARK(thing) memset(&(thing), 0xa5, sizeof(thing))
#define NOTE_MARKS(what, thing, from)                                                                                  \
    note("%s: %d of %zu marks", what, marks_from(&(thing), from, sizeof(thing)), sizeof(thing) - (size_t)(from))

/* All calls that receive, with so many bytes there, which they only look at. */
static void receive_in_every_way(int fd, size_t there) {
    char bytes[ROOM], more[ROOM], control[ROOM];
    struct sockaddr_storage name;
    struct iovec parts[] = {{bytes, 1}, {more, sizeof more}};
    struct mmsghdr list[2];
    int flags = MSG_PEEK | MSG_DONTWAIT;

    MARK(bytes);
    DO(recv(fd, bytes, sizeof bytes, flags));
    NOTE_MARKS("recv", bytes, there);
    MARK(bytes), MARK(name);
    socklen_t length = sizeof name;
    DO(recvfrom(fd, bytes, sizeof bytes, flags, (struct sockaddr *)&name, &length));
    NOTE_MARKS("recvfrom", bytes, there);
    NOTE_MARKS("its name", name, 0);
    MARK(bytes), MARK(more), MARK(control), MARK(name);
    struct msghdr message = {&name, sizeof name, parts, 2, control, sizeof control, 0x5a5a};
    DO(recvmsg(fd, &message, flags));
    NOTE_MARKS("recvmsg", bytes, there > 1 ? 1 : there);
    NOTE_MARKS("its second part", more, there > 1 ? there - 1 : 0);
    NOTE_MARKS("its control", control, 0);
    note("parts %d: %zu and %zu", (int)message.msg_iovlen, parts[0].iov_len, parts[1].iov_len);
    MARK(bytes), MARK(more), memset(list, 0, sizeof list);
    for (int i = 0; i < 2; i++)
        list[i].msg_hdr.msg_iov = &parts[i], list[i].msg_hdr.msg_iovlen = 1, list[i].msg_len = 77;
    parts[0].iov_len = sizeof bytes;
    struct timespec limit = {0, 1000};
    DO(recvmmsg(fd, list, 1, flags, &limit));
    NOTE_MARKS("recvmmsg", bytes, there);
    NOTE_MARKS("the next", more, 0);
    note("lengths: %s, %u", there ? "told" : list[0].msg_len == 77 ? "as it was" : "changed", list[1].msg_len);
    MARK(bytes);
    DO(recv(fd, bytes, sizeof bytes, flags | MSG_TRUNC));
    NOTE_MARKS("with MSG_TRUNC", bytes, 0);
}

/* All calls that wait, without time. */
static void wait_in_every_way(int fd, int set) {
    struct epoll_event events[EVENTS];
    struct pollfd list[2] = {{fd, POLLIN, 0x5a}, {-1, POLLIN, 0x5a}};
    struct timespec none = {0, 0};
    fd_set in, other;

    MARK(events);
    int told = DO(epoll_wait(set, events, EVENTS, 0));
    NOTE_MARKS("its events", events, told * sizeof *events);
    MARK(events);
    told = DO(epoll_wait(set, events, 1, 0));
    NOTE_MARKS("one event", events, told * sizeof *events);
    MARK(events);
    told = DO(epoll_pwait(set, events, EVENTS, 0, NULL));
    NOTE_MARKS("its events", events, told * sizeof *events);
    DO(poll(list, 2, 0));
    note("events %x %x, told %x %x", list[0].events, list[1].events, list[0].revents, list[1].revents);
    DO(ppoll(list, 2, &none, NULL));
    note("time %ld %ld", (long)none.tv_sec, none.tv_nsec);
    FD_ZERO(&in);
    FD_ZERO(&other);
    FD_SET(fd, &in);
    DO(pselect(fd + 1, &in, NULL, &other, &none, NULL));
    note("in %d, other %d, time %ld %ld", !!FD_ISSET(fd, &in), !!FD_ISSET(fd, &other), (long)none.tv_sec, none.tv_nsec);
}

static void server(int fd) {
    char bytes[ROOM];
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
    warm(fd);
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (int round = 0; round < 3; round++) {
        receive_in_every_way(fd, 0);
        wait_in_every_way(fd, set);
        meet(), meet();
        await_bytes(fd, 5);
        wait_in_every_way(fd, set);
        receive_in_every_way(fd, 5);
        MARK(bytes);
        DO(recv(fd, bytes, sizeof bytes, 0));
        NOTE_MARKS("the last", bytes, 5);
        meet();
    }
    DO(close(set));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    for (int round = 0; round < 3; round++) {
        meet();
        DO(send(fd, "bytes", 5, 0));
        meet(), meet();
    }
    DO(close(fd));
}
