/* syscall() reaches the same connection. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[100];
    warm(fd);
    DO(syscall(SYS_recvfrom, fd, bytes, 10, MSG_WAITALL, NULL, NULL));
    DO(right(bytes, 0, 10));
    DO(syscall(SYS_read, fd, bytes, 0));
    meet();
    await_bytes(fd, 90);
    struct iovec part = {bytes, 40};
    DO(syscall(SYS_readv, fd, &part, 1));
    DO(right(bytes, 10, 40));
    DO(syscall(SYS_read, fd, bytes, 100));
    DO(right(bytes, 50, 50));
    DO(syscall(SYS_write, fd, "answer", 6));
    DO(syscall(SYS_shutdown, fd, SHUT_WR));
    DO(recv(fd, bytes, 1, 0));
    DO(syscall(SYS_close, fd));
}

static void client(int fd) {
    unsigned char bytes[100];
    warm(fd);
    fill(bytes, 0, sizeof bytes);
    DO(syscall(SYS_sendto, fd, bytes, 10, 0, NULL, 0));
    struct iovec parts[2] = {{bytes + 10, 45}, {bytes + 55, 45}};
    DO(syscall(SYS_writev, fd, parts, 2));
    meet();
    DO(recv(fd, bytes, 6, MSG_WAITALL));
    DO(recv(fd, bytes, 6, MSG_WAITALL));
    DO(close(fd));
}
