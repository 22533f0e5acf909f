/* SO_TIMESTAMP and its kin: recvmsg tells when bytes came. With LATE the option comes after many bytes. */
#include "behaviour.h"
#include <linux/net_tstamp.h>

#ifndef LATE
#define LATE 0
#endif

static void receive(int fd, int length) {
    char bytes[100], control[256];
    struct iovec part = {bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_WAITALL);
    note("received %zd, flags %x", got, message.msg_flags);
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        note("level %d, type %d, length %zu", one->cmsg_level, one->cmsg_type, one->cmsg_len);
}

/* The kernel begins to stamp packets a moment after the first socket wants it, and that moment may be long on a busy machine: sends
 * some until then, on a connection that wants it, too. */
static void await_stamps(void) {
    int port, listener = listen_somewhere(AF_INET, &port), yes = 1, stamped = 0;
    int near = dial(AF_INET, port), far = accept_one(listener);
    if (setsockopt(far, SOL_SOCKET, SO_TIMESTAMP, &yes, sizeof yes) < 0)
        die("setsockopt");
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; !stamped && now_us() < end;) {
        char byte, control[256];
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        if (send(near, "s", 1, 0) != 1 || recvmsg(far, &message, MSG_WAITALL) != 1)
            die("a stamped byte");
        stamped = CMSG_FIRSTHDR(&message) != NULL;
    }
    close(near), close(far), close(listener);
}

static void server(int fd) {
    static const int options[] = {SO_TIMESTAMP, SO_TIMESTAMPNS};
    if (LATE)
        warm(fd);
    for (int i = 0; i < 2; i++) {
        set_int(fd, SOL_SOCKET, options[i], 1);
        await_stamps();
        meet();
        receive(fd, 100);
        warm(fd);
        meet();
        receive(fd, 100);
        set_int(fd, SOL_SOCKET, options[i], 0);
    }
    receive_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    if (LATE)
        warm(fd);
    for (int i = 0; i < 2; i++) {
        meet();
        send_pattern(fd, 0, 100);
        warm(fd);
        meet();
        send_pattern(fd, 0, 100);
    }
    send_pattern(fd, 0, 100000);
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
