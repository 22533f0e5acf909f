/* A program whose peer is killed: traffic serve MODE | traffic client MODE PORT.
 *
 * It says "port N" (a server), "running" once traffic goes both ways, "ended HOW NANOSECONDS" when it learns that the peer
 * is gone, and then, after one more connection (a server accepts it, a client is told the port on standard input), "probed". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
    fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
    exit(3);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static void ended(const char *how) { printf("ended %s %ld\n", how, now()); }

/* Receives all of it; says how the stream ended if it did. */
static int receive(int fd, char *bytes, size_t length, const char *mode, int set) {
    for (size_t done = 0; done < length;) {
        if (!strcmp(mode, "poll")) {
            struct pollfd entry = {fd, POLLIN, 0};
            poll(&entry, 1, -1);
        } else if (!strcmp(mode, "epoll")) {
            struct epoll_event event;
            epoll_wait(set, &event, 1, -1);
        }
        ssize_t got = recv(fd, bytes + done, length - done, 0);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            ended(got == 0 ? "EOF" : strerrorname_np(errno));
            return 0;
        }
        if (got > 0)
            done += got;
    }
    return 1;
}

static int transmit(int fd, const char *bytes, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(fd, bytes + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            ended(strerrorname_np(errno));
            return 0;
        }
        if (sent > 0)
            done += sent;
    }
    return 1;
}

/* One exchange, started by the client. */
static int exchange(int fd, int serves, char *bytes, size_t length, const char *mode, int set) {
    if (serves)
        return receive(fd, bytes, length, mode, set) && transmit(fd, bytes, length);
    return transmit(fd, bytes, length) && receive(fd, bytes, length, mode, set);
}

static void probe(int fd, int serves) {
    char bytes[64] = {0};
    for (int i = 0; i < 40; i++)
        if (!exchange(fd, serves, bytes, sizeof bytes, "block", -1))
            die("the next connection broke");
    puts("probed");
    close(fd);
}

static int dial(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("connect");
    return fd;
}

int main(int argc, char **argv) {
    static char bytes[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = -1, fd, set = epoll_create1(EPOLL_CLOEXEC);
    int serves = argc == 3 && !strcmp(argv[1], "serve");
    if (!serves && argc != 4)
        return 2;
    const char *mode = argv[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (serves) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 8) < 0 ||
            getsockname(listener, (struct sockaddr *)&address, &length) < 0)
            die("listen");
        printf("port %d\n", ntohs(address.sin_port));
        fd = accept(listener, NULL, NULL);
    } else {
        fd = dial(atoi(argv[3]));
    }
    struct epoll_event event = {.events = EPOLLIN};
    if (fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("a connection");
    int running = 1;
    for (int i = 0; i < 20 && running; i++)
        running = exchange(fd, serves, bytes, 64, mode, set);
    if (running)
        puts("running");
    while (running) {
        if (!strcmp(mode, "flood"))
            running = serves ? receive(fd, bytes, sizeof bytes, mode, set) : transmit(fd, bytes, sizeof bytes);
        else if (!strcmp(mode, "full"))
            running = serves ? (pause(), 1) : transmit(fd, bytes, sizeof bytes);
        else if (!strcmp(mode, "idle"))
            running = receive(fd, bytes, 1, mode, set);
        else
            running = exchange(fd, serves, bytes, 64, mode, set);
    }
    close(fd);
    if (!serves) {
        int port;
        if (scanf("%d", &port) != 1)
            return 0;
        fd = dial(port);
    } else if ((fd = accept(listener, NULL, NULL)) < 0) {
        die("accept");
    }
    probe(fd, serves);
    return 0;
}
