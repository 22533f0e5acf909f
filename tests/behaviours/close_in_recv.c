/* A descriptor is closed while another thread waits in recv: the call keeps the connection until it returns. */
#include "behaviour.h"

static int the_fd;
static pid_t receiver;
static char bytes[16];

static void *receive(void *unused UNUSED) {
    __atomic_store_n(&receiver, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    long got = recv(the_fd, bytes, sizeof bytes, 0);
    return (void *)(got < 0 ? -(long)errno : got);
}

static void server(int fd) {
    pthread_t thread;
    void *result;
    warm(fd);
    the_fd = fd;
    pthread_create(&thread, NULL, receive, NULL);
    await_asleep(&receiver);
    DO(close(fd));
    /* The number is free at once, and taken by something else. */
    int other = open("/dev/null", O_RDWR), again = dup2(other, fd);
    DO(again == fd);
    if (other != again)
        close(other);
    meet();
    pthread_join(thread, &result);
    note("received %ld", (long)result);
    DO(write(again, "x", 1));
    DO(close(again));
    meet();
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    DO(send(fd, "hello", 5, 0));
    DO(recv(fd, &byte, 1, 0));
    meet();
    DO(close(fd));
}
