/* The same over IPv6. */
#define FAMILY AF_INET6
#include "behaviour.h"

static void server(int fd) {
    struct sockaddr_in6 name;
    socklen_t length = sizeof name;
    char byte;
    warm(fd);
    DO(getpeername(fd, (struct sockaddr *)&name, &length));
    note("family %d, loopback %d, length %u", name.sin6_family == AF_INET6, IN6_IS_ADDR_LOOPBACK(&name.sin6_addr), length);
    receive_pattern(fd, 0, 500000);
    send_pattern(fd, 0, 500000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    send_pattern(fd, 0, 500000);
    receive_pattern(fd, 0, 500000);
    DO(close(fd));
}
