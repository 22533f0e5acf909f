/* Addresses, types and states of an accelerated socket are those of the connection under it. */
#include "behaviour.h"

static void both(int fd) {
    struct sockaddr_in own, peer;
    socklen_t length = sizeof own;
    struct stat status;
    warm(fd);
    DO(getsockname(fd, (struct sockaddr *)&own, &length));
    DO(getpeername(fd, (struct sockaddr *)&peer, &length));
    note("ports differ %d, loopback %d", own.sin_port != peer.sin_port, own.sin_addr.s_addr == peer.sin_addr.s_addr);
    DO(fstat(fd, &status));
    DO(S_ISSOCK(status.st_mode));
    DO(get_int(fd, SOL_SOCKET, SO_TYPE));
    DO(get_int(fd, SOL_SOCKET, SO_DOMAIN));
    DO(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
    DO(get_int(fd, SOL_SOCKET, SO_ACCEPTCONN));
    DO(get_int(fd, SOL_SOCKET, SO_ERROR));
    struct tcp_info info;
    length = sizeof info;
    DO(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
    note("state %d", info.tcpi_state);
    DO(lseek(fd, 0, SEEK_CUR));
    meet();
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
