/* Linger with time, more of it than the program may take: close returns when the bytes have gone, and all of them arrive. */
#include "behaviour.h"

static void server(int fd) {
    struct linger linger = {1, 5 * PATIENCE_MS / 1000};
    warm(fd);
    DO(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    send_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    receive_pattern(fd, 0, 100000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
