/* SO_RCVTIMEO. */
#include "behaviour.h"

static void timed(int fd, int flags) {
    char byte;
    int64_t begin = now_us();
    DO(recv(fd, &byte, 1, flags));
    int64_t took = now_us() - begin;
    note("after the time: %d", took >= 45000);
}

static void server(int fd) {
    struct timeval time = {0, 50000}, read_back = {0};
    socklen_t length = sizeof read_back;
    warm(fd);
    meet();
    DO(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    DO(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &read_back, &length));
    note("%ld.%06ld", read_back.tv_sec, read_back.tv_usec);
    timed(fd, 0);
    timed(fd, MSG_PEEK);
    meet();
    char bytes[100];
    await_bytes(fd, 10);
    DO(recv(fd, bytes, 100, MSG_WAITALL));
    DO(recv(fd, bytes, 100, MSG_WAITALL));
    time.tv_usec = 0;
    DO(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    meet();
    DO(recv(fd, bytes, 100, 0));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    DO(send(fd, "ten bytes", 10, 0));
    meet();
    pause_ms(80);
    DO(send(fd, "x", 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
