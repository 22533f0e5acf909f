/* Nothing sent, nothing asked for. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    struct iovec none = {&byte, 0};
    warm(fd);
    DO(recv(fd, &byte, 0, MSG_DONTWAIT));
    DO(read(fd, &byte, 0));
    DO(readv(fd, &none, 1));
    meet();
    DO(recv(fd, &byte, 1, MSG_DONTWAIT));
    meet();
    await_bytes(fd, 1);
    DO(read(fd, &byte, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    struct iovec none = {"", 0};
    warm(fd);
    DO(send(fd, "", 0, 0));
    DO(write(fd, "", 0));
    DO(writev(fd, &none, 1));
    meet();
    meet();
    DO(send(fd, "x", 1, 0));
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
