/* EPIPE comes with SIGPIPE, unless asked otherwise. */
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    meet();
    DO(close(fd));
    meet();
    meet();
}

static void client(int fd) {
    struct iovec part = {"xy", 2};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    on_signal(SIGPIPE, 0);
    warm(fd);
    DO(shutdown(fd, SHUT_WR));
    meet();
    meet();
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(handled);
    DO(send(fd, "x", 1, 0));
    DO(handled);
    DO(write(fd, "x", 1));
    DO(handled);
    DO(writev(fd, &part, 1));
    DO(handled);
    DO(sendmsg(fd, &message, 0));
    DO(handled);
    DO(sendmsg(fd, &message, MSG_NOSIGNAL));
    DO(handled);
    meet();
    DO(close(fd));
}
