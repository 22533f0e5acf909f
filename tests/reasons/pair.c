/* Connects to itself or to a port, brings the connection into the state that it is told, says "ready PID FD LISTENER PORT", and
 * stays until its standard input ends. In the state "serve" it echoes what its first client sends, and ends with that. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int listener, client, server;
static char bytes[4096];

static void check(int fine) {
    if (!fine)
        perror("pair"), exit(1);
}

/* Both ends in this process; with a port, and at most an address, only the client's. */
static int pair(const char *port, const char *host) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    client = socket(AF_INET, SOCK_STREAM, 0);
    if (port) {
        address.sin_port = htons(atoi(port));
        check(!host || inet_pton(AF_INET, host, &address.sin_addr) == 1);
    } else {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
        check(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    }
    check(connect(client, (struct sockaddr *)&address, length) == 0);
    if (!port)
        check((server = accept(listener, NULL, NULL)) >= 0);
    return ntohs(address.sin_port);
}

static int serve(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    check(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    printf("ready %d %d %d %d\n", getpid(), listener, listener, ntohs(address.sin_port)), fflush(stdout);
    check((server = accept(listener, NULL, NULL)) >= 0);
    while (recv(server, bytes, 64, MSG_WAITALL) == 64)
        check(send(server, bytes, 64, 0) == 64);
    return 0;
}

static void exchange(int times) {
    for (int i = 0; i < times; i++) {
        check(send(client, bytes, 64, 0) == 64 && (!server || recv(server, bytes, 64, MSG_WAITALL) == 64));
        check((!server || send(server, bytes, 64, 0) == 64) && recv(client, bytes, 64, MSG_WAITALL) == 64);
    }
}

/* Past the C library. */
static long raw(long number, long a, long b, long c) {
    long result;
#ifdef __x86_64__
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
    result = syscall(number, a, b, c);
#endif
    return result;
}

int main(int count, char **arguments) {
    const char *state = count > 1 ? arguments[1] : "";
    int ends[2], port;
    if (strcmp(state, "uring") == 0) {
        char made[256] = {0};
        check(syscall(SYS_io_uring_setup, 4, made) >= 0);
    }
    if (strcmp(state, "serve") == 0)
        return serve();
    port = strcmp(state, "peer") == 0 ? pair(arguments[2], arguments[3]) : pair(NULL, NULL);
    if (strcmp(state, "promoted") == 0 || strcmp(state, "peer") == 0) {
        exchange(100);
    } else if (strcmp(state, "uring") == 0) {
        exchange(100);
    } else if (strcmp(state, "young") == 0) {
        exchange(1);
    } else if (strcmp(state, "titled") == 0) {
        /* As programs do that write their title there. */
        for (char **variable = environ; *variable; variable++)
            memset(*variable, 0, strlen(*variable));
    } else if (strcmp(state, "option") == 0) {
        int on = 1;
        check(setsockopt(client, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on) == 0);
        exchange(100);
    } else if (strcmp(state, "demoted") == 0) {
        /* One end must leave; the other follows, and is the one that is shown. */
        int on = 1;
        exchange(100);
        check(setsockopt(client, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on) == 0);
        exchange(100);
        client = server;
    } else if (strcmp(state, "holder") == 0) {
        check(pipe(ends) == 0);
        if (fork() == 0) {
            close(ends[1]);
            _exit(read(ends[0], bytes, 1) < 0);
        }
        close(ends[0]);
        exchange(100);
    } else if (strcmp(state, "passed") == 0) {
        char control[CMSG_SPACE(sizeof client)] = {0};
        struct iovec one = {bytes, 1};
        struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof client);
        memcpy(CMSG_DATA(head), &client, sizeof client);
        exchange(100);
        check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && sendmsg(ends[0], &message, 0) == 1);
        exchange(100);
    } else if (strcmp(state, "foreign") == 0) {
        check(raw(SYS_write, client, (long)bytes, 64) == 64 && recv(server, bytes, 64, MSG_WAITALL) == 64);
        exchange(100);
    } else if (strcmp(state, "overflow") == 0) {
        exchange(100);
        check(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
        for (int i = 0; i < 4096; i++) {
            if (send(client, bytes, sizeof bytes, 0) < 0)
                check(errno == EAGAIN), usleep(1000);
        }
    } else if (strcmp(state, "standard") == 0) {
        /* The C library writes there by itself. */
        check(dup2(client, 2) == 2);
        exchange(100);
    } else if (strcmp(state, "closed") == 0) {
        check(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    } else if (strcmp(state, "sandbox") == 0) {
        struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog filter = {1, allow};
        exchange(100);
        check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
        exchange(100);
    } else {
        return 2;
    }
    printf("ready %d %d %d %d\n", getpid(), client, listener, port), fflush(stdout);
    while (read(0, bytes, 1) > 0)
        ;
    return 0;
}
