/* A process that changes its root (as far as it may) goes on with its connections. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    DO(chroot("/usr"));
    DO(chdir("/"));
    warm(fd);
    meet();
    receive_pattern(fd, 0, 300000);
    send_pattern(fd, 5, 300000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    meet();
    send_pattern(fd, 0, 300000);
    receive_pattern(fd, 5, 300000);
    DO(close(fd));
}
