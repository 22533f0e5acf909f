/* Two processes with one connection between them, each with an end of its own. Says "ready CLIENT SERVER PORT", and then does what
 * it is told until its standard input ends. With a second word, the server listens at that port.
 * What it does:
 *   duplex   both write and read all the time; every byte is checked against its position
 *   pingpong 64 bytes to and fro, with blocking calls
 *   recv     the server sleeps in recv, and echoes a byte for each line of the standard input
 *   epoll    the same in epoll_wait
 *   lost     the server is killed, while a child of it has the connection open
 * The client says what it has seen: "duplex BYTES", "pingpong EXCHANGES", "echo" for each line. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int fine, const char *what) {
    if (!fine)
        perror(what), exit(1);
}

static unsigned char at(uint64_t position) { return (unsigned char)(position * 31 + (position >> 8) * 7 + (position >> 16)); }

static volatile int over;

/* Writes until it is over, in pieces of changing sizes, and then says that nothing follows. */
static void *write_all(void *argument) {
    int fd = *(int *)argument;
    static __thread unsigned char bytes[70000];
    uint64_t position = 0, size = 1;
    while (!over) {
        size = size * 1103515245 % 65537 + 1;
        for (uint64_t i = 0; i < size; i++)
            bytes[i] = at(position + i);
        for (uint64_t done = 0; done < size;) {
            ssize_t count = send(fd, bytes + done, size - done, MSG_NOSIGNAL);
            check(count > 0, "send");
            done += count;
        }
        position += size;
    }
    shutdown(fd, SHUT_WR);
    return (void *)position;
}

static uint64_t read_all(int fd) {
    static unsigned char bytes[50000];
    uint64_t position = 0;
    for (;;) {
        ssize_t count = recv(fd, bytes, sizeof bytes, 0);
        check(count >= 0, "recv");
        if (count == 0)
            return position;
        for (ssize_t i = 0; i < count; i++)
            if (bytes[i] != at(position + i))
                fprintf(stderr, "a wrong byte at %lu\n", (unsigned long)(position + i)), exit(3);
        position += count;
    }
}

static int input_ended(void) {
    struct pollfd input = {0, POLLIN, 0};
    char byte;
    return poll(&input, 1, 0) == 1 && read(0, &byte, 1) == 0;
}

static void duplex(int fd, int is_client) {
    pthread_t writer;
    uint64_t got;
    pthread_create(&writer, NULL, write_all, &fd);
    if (is_client) {
        pthread_t reader;
        pthread_create(&reader, NULL, (void *(*)(void *))(void (*)(void))read_all, (void *)(intptr_t)fd);
        while (!input_ended())
            usleep(1000);
        over = 1;
        pthread_join(writer, NULL);
        pthread_join(reader, (void **)&got);
        printf("duplex %lu\n", (unsigned long)got);
    } else {
        read_all(fd);
        over = 1;
        pthread_join(writer, NULL);
    }
}

static void pingpong(int fd, int is_client) {
    unsigned char bytes[64] = {0};
    unsigned long times = 0;
    while (!is_client || times % 64 != 0 || !input_ended()) {
        memset(bytes, (int)times, sizeof bytes);
        if (is_client)
            check(send(fd, bytes, 64, 0) == 64, "send");
        ssize_t count = recv(fd, bytes, 64, MSG_WAITALL);
        if (count == 0 && !is_client)
            return;
        check(count == 64 && bytes[0] == (unsigned char)times && bytes[63] == bytes[0], "recv");
        if (!is_client)
            check(send(fd, bytes, 64, 0) == 64, "send");
        times++;
    }
    printf("pingpong %lu\n", times);
}

static void echo(int fd, int is_client, int with_epoll) {
    char byte;
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    check(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    for (int i = 0; is_client && i < 100; i++)
        check(send(fd, "x", 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1, "exchange");
    if (is_client)
        printf("settled\n"), fflush(stdout);
    for (;;) {
        if (is_client && read(0, &byte, 1) != 1)
            return;
        if (is_client)
            check(send(fd, &byte, 1, 0) == 1, "send");
        else if (with_epoll)
            check(epoll_wait(set, &event, 1, -1) == 1, "epoll_wait");
        char answer;
        ssize_t count = recv(fd, &answer, 1, 0);
        if (count == 0 && !is_client)
            return;
        check(count == 1 && (!is_client || answer == byte), "recv");
        if (is_client)
            printf("echo\n"), fflush(stdout);
        else
            check(send(fd, &answer, 1, 0) == 1, "send");
    }
}

/* The death of the server is no end of the connection, which its child has. */
static void lose(int fd, int is_client) {
    char byte;
    for (int i = 0; i < 100; i++) {
        check(!is_client || send(fd, "x", 1, 0) == 1, "send");
        check(recv(fd, &byte, 1, 0) == 1, "recv");
        check(is_client || send(fd, "x", 1, 0) == 1, "send");
    }
    if (!is_client) {
        pid_t client = getppid();
        if (fork() == 0) {
            close(1);
            while (kill(client, 0) == 0)
                usleep(20000);
            _exit(0);
        }
        kill(getpid(), SIGKILL);
    }
    check(wait(NULL) > 0, "wait");
    for (int i = 0; i < 200; i++)
        check(send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1, "send"), usleep(200);
    printf("settled\n"), fflush(stdout);
    while (read(0, &byte, 1) > 0)
        check(send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1, "send");
}

static void work(const char *what, int fd, int is_client) {
    if (strcmp(what, "duplex") == 0)
        duplex(fd, is_client);
    else if (strcmp(what, "pingpong") == 0)
        pingpong(fd, is_client);
    else if (strcmp(what, "lost") == 0)
        lose(fd, is_client);
    else
        echo(fd, is_client, strcmp(what, "epoll") == 0);
    close(fd);
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const char *what = count > 1 ? arguments[1] : "";
    int again = 1;
    address.sin_port = htons(count > 2 ? atoi(arguments[2]) : 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0), status = 0;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    pid_t server = fork();
    if (server == 0) {
        close(0);
        int fd = accept(listener, NULL, NULL);
        check(fd >= 0, "accept");
        work(what, fd, 0);
        return 0;
    }
    close(listener);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(fd, (struct sockaddr *)&address, length) == 0, "connect");
    printf("ready %d %d %d\n", getpid(), server, ntohs(address.sin_port)), fflush(stdout);
    work(what, fd, 1);
    check(strcmp(what, "lost") == 0 || (waitpid(server, &status, 0) == server && status == 0), "the server");
    printf("done\n");
    return 0;
}
