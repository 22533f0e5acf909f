/* FIONREAD and SIOCOUTQ. */
#include "behaviour.h"
#include <linux/sockios.h>

static int ask(int fd, unsigned long what) {
    int value = -1;
    return ioctl(fd, what, &value) < 0 ? -errno : value;
}

static void server(int fd) {
    char bytes[100];
    warm(fd);
    DO(ask(fd, FIONREAD));
    meet();
    meet();
    await_bytes(fd, 300);
    DO(ask(fd, FIONREAD));
    DO(recv(fd, bytes, 100, 0));
    DO(ask(fd, FIONREAD));
    DO(recv(fd, bytes, 50, MSG_PEEK));
    DO(ask(fd, FIONREAD));
    DO(recv(fd, bytes, 100, 0));
    DO(recv(fd, bytes, 100, 0));
    DO(ask(fd, FIONREAD));
    meet();
    DO(recv(fd, bytes, 1, 0));
    DO(ask(fd, FIONREAD));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    meet();
    send_pattern(fd, 0, 300);
    meet();
    meet();
    int left = -1;
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; now_us() < end && (left = ask(fd, SIOCOUTQ)) != 0;)
        pause_ms(1);
    note("SIOCOUTQ falls to %d", left);
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
