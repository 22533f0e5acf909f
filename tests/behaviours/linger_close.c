/* Linger with time: close returns when the bytes have gone, and all of them arrive. */
#include "behaviour.h"

static void server(int fd) {
    struct linger linger = {1, 5};
    warm(fd);
    DO(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    send_pattern(fd, 0, 100000);
    int64_t begin = now_us();
    DO(close(fd));
    note("in time: %d", now_us() - begin < 4000000);
}

static void client(int fd) {
    char byte;
    warm(fd);
    receive_pattern(fd, 0, 100000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
