/* A connection with bytes that were not read is passed to another process, which reads them and answers. */
#define OWN_ROLES
#include "behaviour.h"
#include <sys/un.h>

enum { PIECE = 40000, ROUNDS = 3 };

static void role(const char *name UNUSED, int port) {
    for (int round = 0; round < ROUNDS; round++) {
        int fd = dial(AF_INET, port);
        me = &client_side;
        warm(fd);
        size_t before = me->length;
        send_pattern(fd, 0, PIECE);
        receive_pattern(fd, 0, 1000);
        if (strstr(me->text + before, "all right"))
            me->length = before;
        close(fd);
    }
}

static void take(int way) {
    for (int round = 0; round < ROUNDS; round++) {
        char byte, space[CMSG_SPACE(sizeof(int))];
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        int fd;
        if (recvmsg(way, &message, 0) != 1)
            _exit(2);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
        size_t before = me->length;
        receive_pattern(fd, 0, PIECE);
        if (!strstr(me->text + before, "all right"))
            _exit(1);
        send_pattern(fd, 0, 1000);
        if (recv(fd, &byte, 1, 0) != 0)
            _exit(3);
        close(fd);
    }
    _exit(0);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), way[2];
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, way) < 0)
        die("socketpair");
    pid_t taker = fork();
    if (taker == 0) {
        close(way[0]);
        take(way[1]);
    }
    close(way[1]);
    pid_t client = start_role("client", port);
    for (int round = 0; round < ROUNDS; round++) {
        int fd = accept_one(listener);
        warm(fd);
        await_bytes(fd, 1 + round * 10000);
        char byte = 'f', space[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        struct cmsghdr *control = CMSG_FIRSTHDR(&message);
        control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(control), &fd, sizeof fd);
        DO(sendmsg(way[0], &message, 0));
        close(fd);
    }
    note_end("the taker", taker);
    note_end("the client", client);
}
