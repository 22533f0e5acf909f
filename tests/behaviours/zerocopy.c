/* MSG_ZEROCOPY: the kernel tells on the queue of errors when buffers may be used again. */
#include "behaviour.h"
#include <linux/errqueue.h>

static char bytes[50000];

static void await_completion(int fd, const char *what) {
    char control[256];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    struct pollfd entry = {fd, 0, 0};
    for (;;) {
        int ready = poll(&entry, 1, PATIENCE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        note("%s: %s", what, ready > 0 ? events_text(entry.revents) : "nothing");
        break;
    }
    long got = recvmsg(fd, &message, MSG_ERRQUEUE);
    if (got < 0) {
        note("%s: %s", what, error_name(errno));
        return;
    }
    struct cmsghdr *one = CMSG_FIRSTHDR(&message);
    struct sock_extended_err *report = (void *)CMSG_DATA(one);
    note("%s: origin %d, from %u to %u", what, report->ee_origin, report->ee_info, report->ee_data);
}

static void server(int fd) {
    receive_pattern(fd, 0, sizeof bytes);
    warm(fd);
    receive_pattern(fd, 0, sizeof bytes);
    meet();
    receive_pattern(fd, 0, sizeof bytes);
    meet();
    warm(fd);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    fill(bytes, 0, sizeof bytes);
    set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
    DO(send(fd, bytes, sizeof bytes, 0));
    warm(fd);
    DO(send(fd, bytes, sizeof bytes, MSG_ZEROCOPY));
    meet();
    await_completion(fd, "first");
    DO(send(fd, bytes, sizeof bytes, MSG_ZEROCOPY));
    meet();
    await_completion(fd, "second");
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
