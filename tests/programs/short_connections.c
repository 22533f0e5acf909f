/* Short connections, as a proxy and the server behind it have them: neither end waits but in epoll. Both ends are in this
 * process, so that every run makes the same calls. Each part lies between two calls of getppid. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int set, listener, one = 1;
static struct sockaddr_in address = {.sin_family = AF_INET};

static void check(int good, const char *what) {
    if (!good) {
        perror(what);
        exit(1);
    }
}

static void add(int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    check(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* Waits until a descriptor has one of these events. */
static void await(int fd, unsigned wanted) {
    for (;;) {
        struct epoll_event events[8];
        int count = epoll_wait(set, events, 8, 60000);
        check(count > 0, "epoll_wait");
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == fd && events[i].events & wanted)
                return;
    }
}

static void connection(void) {
    char bytes[2048] = {0};
    int error = -1;
    socklen_t len = sizeof error;
    int client = socket(AF_INET, SOCK_STREAM, 0);
    check(client >= 0 && ioctl(client, FIONBIO, &one) == 0, "socket");
    add(client, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    check(connect(client, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS, "connect");
    await(client, EPOLLOUT);
    check(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0, "getsockopt");
    struct iovec question = {bytes, 90};
    check(writev(client, &question, 1) == 90, "writev");

    struct sockaddr_in peer;
    len = sizeof peer;
    await(listener, EPOLLIN);
    int server = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK);
    check(server >= 0, "accept4");
    add(server, EPOLLIN | EPOLLRDHUP | EPOLLET);
    await(server, EPOLLIN);
    check(recv(server, bytes, sizeof bytes, 0) == 90, "recv");
    struct iovec answer[] = {{bytes, 250}, {bytes, 900}};
    check(writev(server, answer, 2) == 1150, "writev");
    check(close(server) == 0, "close");

    await(client, EPOLLIN);
    check(recv(client, bytes, sizeof bytes, 0) == 1150, "recv");
    check(close(client) == 0, "close");
}

int main(void) {
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    check(listen(listener, 16) == 0 && ioctl(listener, FIONBIO, &one) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&address, &len) == 0, "getsockname");
    set = epoll_create1(EPOLL_CLOEXEC);
    add(listener, EPOLLIN);
    connection();
    getppid();
    for (int i = 0; i < 50; i++)
        connection();
    getppid();
    return 0;
}
