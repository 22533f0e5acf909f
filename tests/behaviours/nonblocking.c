/* The non-blocking mode, by fcntl, FIONBIO and accept4, and its change while promoted. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    int on = 1, off = 0;
    warm(fd);
    meet();
    DO(fcntl(fd, F_GETFL) & O_NONBLOCK);
    set_nonblocking(fd, 1);
    DO((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    DO(recv(fd, &byte, 1, 0));
    DO(read(fd, &byte, 1));
    set_nonblocking(fd, 0);
    meet();
    DO(recv(fd, &byte, 1, 0));
    DO(ioctl(fd, FIONBIO, &on));
    DO(recv(fd, &byte, 1, 0));
    int copy = dup(fd);
    DO(recv(copy, &byte, 1, 0));
    DO(ioctl(copy, FIONBIO, &off));
    meet();
    DO(recv(fd, &byte, 1, 0));
    DO(close(copy));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    pause_ms(20);
    DO(send(fd, "a", 1, 0));
    meet();
    pause_ms(20);
    DO(send(fd, "b", 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
