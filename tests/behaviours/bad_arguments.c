/* Wrong pointers, numbers and flags give errors, not crashes. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[10];
    char *volatile nowhere = (char *)8;
    warm(fd);
    meet();
    await_bytes(fd, 20);
    DO(recv(fd, nowhere, 10, 0));
    DO(read(fd, nowhere, 10));
    struct iovec parts[2] = {{bytes, 5}, {nowhere, 10}};
    DO(readv(fd, parts, 2));
    DO(recv(99, bytes, 10, 0));
    DO(recvmsg(fd, (struct msghdr *)nowhere, 0));
    int pipe_ends[2];
    if (pipe(pipe_ends) == 0)
        DO(recv(pipe_ends[0], bytes, 10, 0));
    DO(shutdown(fd, 77));
    DO(shutdown(pipe_ends[0], SHUT_WR));
    DO(shutdown(99, SHUT_WR));
    DO(close(99));
    DO(recv(fd, bytes, 10, 0));
    note("%08x", checksum(bytes, 10));
    meet();
    DO(close(fd));
}

static void client(int fd) {
    char *volatile nowhere = (char *)8;
    warm(fd);
    send_pattern(fd, 0, 20);
    meet();
    DO(send(fd, nowhere, 10, 0));
    DO(write(fd, nowhere, 10));
    struct iovec part = {nowhere, 10};
    DO(writev(fd, &part, 1));
    DO(sendmsg(fd, (struct msghdr *)nowhere, 0));
    meet();
    DO(close(fd));
}
