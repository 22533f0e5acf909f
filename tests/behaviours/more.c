/* MSG_MORE and TCP_CORK delay, and lose nothing. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[64];
    warm(fd);
    DO(recv(fd, bytes, 30, MSG_WAITALL));
    DO(right(bytes, 0, 30));
    DO(recv(fd, bytes, 20, MSG_WAITALL));
    DO(right(bytes, 30, 20));
    DO(recv(fd, bytes, 10, MSG_WAITALL));
    DO(right(bytes, 50, 10));
    DO(recv(fd, bytes, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    unsigned char bytes[60];
    warm(fd);
    fill(bytes, 0, sizeof bytes);
    DO(send(fd, bytes, 10, MSG_MORE));
    DO(send(fd, bytes + 10, 10, MSG_MORE));
    DO(send(fd, bytes + 20, 10, 0));
    set_int(fd, IPPROTO_TCP, TCP_CORK, 1);
    DO(write(fd, bytes + 30, 10));
    DO(write(fd, bytes + 40, 10));
    DO(get_int(fd, IPPROTO_TCP, TCP_CORK));
    set_int(fd, IPPROTO_TCP, TCP_CORK, 0);
    DO(send(fd, bytes + 50, 10, MSG_MORE));
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
