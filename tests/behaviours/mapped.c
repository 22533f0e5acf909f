/* An IPv4 client of an IPv6 listener. */
#define FAMILY AF_INET6
#define MAPPED
#include "behaviour.h"

static void server(int fd) {
    struct sockaddr_in6 name;
    socklen_t length = sizeof name;
    char byte;
    warm(fd);
    DO(getpeername(fd, (struct sockaddr *)&name, &length));
    note("mapped %d", IN6_IS_ADDR_V4MAPPED(&name.sin6_addr));
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
