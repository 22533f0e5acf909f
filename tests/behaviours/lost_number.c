/* A number that was closed past libc, and is another file's by now: calls are that file's. */
#include "behaviour.h"

/* As io_uring closes, or a program without libc. */
static long close_past_libc(long fd) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
    return result;
#else
    register long number __asm__("x8") = SYS_close, result __asm__("x0") = fd;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(number) : "memory");
    return result;
#endif
}

static void use_file(int fd, const char *what) {
    char bytes[8] = "abcdefg";
    struct iovec part = {bytes, 4};
    note("%s", what);
    DO(read(fd, bytes, 3));
    DO(write(fd, "xyz", 3));
    DO(writev(fd, &part, 1));
    DO(lseek(fd, 0, SEEK_SET));
    DO(readv(fd, &part, 1));
    note("%.4s", bytes);
    DO(recv(fd, bytes, 1, MSG_DONTWAIT));
    DO(send(fd, bytes, 1, MSG_NOSIGNAL));
}

static void server(int fd) {
    int port, listener = listen_somewhere(AF_INET, &port);
    warm(fd);
    for (int warmed = 0; warmed < 2; warmed++) {
        char byte = 'w';
        int one = dial(AF_INET, port), other = accept_one(listener);
        for (int i = 0; i < warmed * 40; i++)
            if (send(one, &byte, 1, 0) != 1 || recv(other, &byte, 1, 0) != 1 || send(other, &byte, 1, 0) != 1 ||
                recv(one, &byte, 1, 0) != 1)
                die("exchange");
        DO(close_past_libc(one));
        DO(recv(other, &byte, 1, 0));
        DO(close(other));
        int file = memfd_create("file", 0);
        DO(file == one);
        DO(pwrite(file, "0123456789", 10, 0));
        use_file(file, warmed ? "a file, after a warm connection" : "a file, after a new one");
        DO(close(file));
    }
    /* Closed and not used again. */
    int one = dial(AF_INET, port), other = accept_one(listener);
    char byte;
    DO(close_past_libc(one));
    DO(recv(one, &byte, 1, 0));
    DO(read(one, &byte, 1));
    DO(write(one, &byte, 1));
    DO(recv(other, &byte, 1, 0));
    DO(close(one));
    DO(close(other));
    /* Another socket, which keeps its own options. */
    one = dial(AF_INET, port), other = accept_one(listener);
    DO(send(other, "unread", 6, 0));
    DO(close_past_libc(one));
    int next = socket(AF_INET, SOCK_STREAM, 0);
    struct linger linger = {9, 9};
    socklen_t length = sizeof linger;
    DO(next == one);
    DO(getsockopt(next, SOL_SOCKET, SO_LINGER, &linger, &length));
    note("linger %d", linger.l_onoff);
    close(next), close(other), close(listener);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
