/* MSG_WAITALL gathers what comes in pieces, and gives what there is at the end. */
#include "behaviour.h"

static char bytes[300000];

static void server(int fd) {
    warm(fd);
    DO(recv(fd, bytes, 250000, MSG_WAITALL));
    DO(right(bytes, 0, 250000));
    struct iovec parts[3] = {{bytes, 1000}, {bytes + 1000, 0}, {bytes + 1000, 49000}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    DO(recvmsg(fd, &message, MSG_WAITALL));
    DO(right(bytes, 250000, 50000));
    DO(recv(fd, bytes, 1000, MSG_WAITALL));
    DO(recv(fd, bytes, 1000, MSG_WAITALL));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    for (size_t at = 0; at < 300000; at += 10000) {
        send_pattern(fd, at, 10000);
        if (at % 50000 == 0)
            pause_ms(2);
    }
    DO(send(fd, "few", 3, 0));
    pause_ms(20);
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
