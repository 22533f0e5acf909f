/* TCP_INQ: recvmsg tells how many bytes are left to read, one more after the end has come, and says so if there is no
 * room for it. */
#include "behaviour.h"

static char bytes[4000];

/* Receives, and notes every control message. */
static void receive(int fd, size_t length, size_t room, int flags) {
    char control[256];
    struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = room ? control : NULL, .msg_controllen = room};
    ssize_t got = recvmsg(fd, &message, flags);
    if (got < 0) {
        note("room %zu: %s", room, error_name(errno));
        return;
    }
    note("room %zu: received %zd, control %zu, flags %x", room, got, message.msg_controllen, message.msg_flags);
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_len >= CMSG_LEN(sizeof(int)))
            note("level %d, type %d, length %zu: %d", one->cmsg_level, one->cmsg_type, one->cmsg_len, *(int *)CMSG_DATA(one));
        else
            note("level %d, type %d, length %zu", one->cmsg_level, one->cmsg_type, one->cmsg_len);
}

/* Waits until the end has come, too. */
static void await_end(int fd) { note("end: %s", events_text(await_events(fd, POLLRDHUP) & POLLRDHUP)); }

static void server(int fd) {
    DO(get_int(fd, IPPROTO_TCP, TCP_INQ));
    set_int(fd, IPPROTO_TCP, TCP_INQ, 1);
    meet();
    await_bytes(fd, 1000);
    receive(fd, 100, 256, 0);
    receive(fd, 900, 256, MSG_WAITALL);
    meet();
    warm(fd);
    meet();
    await_bytes(fd, 2000);
    receive(fd, 100, 256, 0);
    receive(fd, 100, 256, MSG_PEEK);
    receive(fd, 100, 256, MSG_WAITALL);
    static const size_t rooms[] = {0, 15, 16, 19, 20, 23, 24};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        receive(fd, 10, rooms[i], 0);
    set_int(fd, IPPROTO_TCP, TCP_INQ, 0);
    receive(fd, 30, 256, 0);
    set_int(fd, IPPROTO_TCP, TCP_INQ, 1);
    receive(fd, 1700, 256, 0);
    receive(fd, 10, 256, MSG_DONTWAIT);
    meet();
    await_end(fd);
    await_bytes(fd, 500);
    receive(fd, 499, 256, 0);
    receive(fd, 100, 256, 0);
    receive(fd, 100, 256, 0);
    DO(close(fd));
}

static void client(int fd) {
    meet();
    send_pattern(fd, 0, 1000);
    meet();
    warm(fd);
    meet();
    send_pattern(fd, 0, 2000);
    meet();
    send_pattern(fd, 0, 500);
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
