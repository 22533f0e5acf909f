/* Options that are set and read back, with traffic in between. */
#include "behaviour.h"

static void both(int fd) {
    warm(fd);
    static const struct {
        int level, option, value;
        const char *name;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"},   {IPPROTO_TCP, TCP_NODELAY, 0, "TCP_NODELAY"},
                   {IPPROTO_TCP, TCP_QUICKACK, 1, "TCP_QUICKACK"}, {SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 33, "TCP_KEEPIDLE"}, {SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"},
                   {SOL_SOCKET, SO_OOBINLINE, 1, "SO_OOBINLINE"},  {IPPROTO_IP, IP_TOS, 16, "IP_TOS"},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT, 5000, "TCP_USER_TIMEOUT"}, {SOL_SOCKET, SO_PRIORITY, 3, "SO_PRIORITY"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int result = setsockopt(fd, options[i].level, options[i].option, &options[i].value, sizeof(int));
        note("%s: %d %d", options[i].name, result, get_int(fd, options[i].level, options[i].option));
        warm(fd);
    }
    int value = 1;
    DO(setsockopt(fd, SOL_SOCKET, 7777, &value, sizeof value));
    DO(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, 1));
    warm(fd);
    meet();
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
