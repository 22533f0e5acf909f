/* A child waits for bytes that had come before the fork in every way there is: they are there, for it and for its parent. */
#include "behaviour.h"

enum { PIECE = 6000 };

static int waits(int fd, int set, size_t position) {
    unsigned char bytes[PIECE];
    struct pollfd entry = {fd, POLLIN | POLLOUT, 0};
    struct timeval soon = {5, 0};
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77}, got = {0};
    fd_set reads;
    int there = -1, own = epoll_create1(0);
    if (poll(&entry, 1, 5000) != 1 || entry.revents != (POLLIN | POLLOUT))
        return 1;
    FD_ZERO(&reads);
    FD_SET(fd, &reads);
    if (select(fd + 1, &reads, NULL, NULL, &soon) != 1)
        return 2;
    if (ioctl(fd, FIONREAD, &there) < 0 || there != PIECE)
        return 3;
    if (epoll_ctl(own, EPOLL_CTL_ADD, fd, &event) < 0 || epoll_wait(own, &got, 1, 5000) != 1 || got.data.u64 != 77)
        return 4;
    if (epoll_wait(set, &got, 1, 5000) != 1 || got.data.u64 != 55 || got.events != EPOLLIN)
        return 5;
    if (recv(fd, bytes, PIECE, MSG_PEEK) < 1 || right(bytes, position, 1) != 1)
        return 6;
    if (recv(fd, bytes, PIECE, MSG_WAITALL | MSG_DONTWAIT) != PIECE || right(bytes, position, PIECE) != PIECE)
        return 7;
    if (recv(fd, bytes, PIECE, MSG_DONTWAIT) != -1 || errno != EAGAIN)
        return 8;
    if (epoll_wait(set, &got, 1, 0) != 0 || epoll_wait(own, &got, 1, 0) != 0)
        return 9;
    entry.events = POLLIN;
    if (poll(&entry, 1, 0) != 0 || ioctl(fd, FIONREAD, &there) < 0 || there != 0)
        return 10;
    close(own);
    return 0;
}

static void server(int fd) {
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 55};
    DO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    warm(fd);
    for (int turn = 0; turn < 4; turn++) {
        size_t position = (size_t)turn * PIECE;
        meet();
        await_bytes(fd, PIECE);
        pid_t child = fork();
        if (child == 0)
            _exit(turn % 2 ? 0 : waits(fd, set, position));
        note_end("the child", child);
        if (turn % 2)
            note("the parent: %d", waits(fd, set, position));
        else
            note_events(fd, POLLIN);
        meet();
    }
    send_pattern(fd, 0, 50000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    for (int turn = 0; turn < 4; turn++) {
        send_pattern(fd, (size_t)turn * PIECE, PIECE);
        meet();
        meet();
    }
    receive_pattern(fd, 0, 50000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
