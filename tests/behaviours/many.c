/* A hundred connections between two processes, served with poll and then with epoll. */
#define OWN_ROLES
#include "behaviour.h"

enum { MANY = 100, ROUNDS = 10 };

static void role(const char *name UNUSED, int port) {
    int fds[MANY];
    char byte;
    for (int i = 0; i < MANY; i++)
        fds[i] = dial(AF_INET, port);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            unsigned char value = (unsigned char)(i + round);
            if (send(fds[(i * 7) % MANY], &value, 1, 0) != 1)
                note("send: %s", error_name(errno));
        }
        for (int i = 0; i < MANY; i++) {
            unsigned char value;
            if (recv(fds[(i * 7) % MANY], &value, 1, 0) != 1 || value != (unsigned char)(i + round + 1))
                note("wrong answer on %d in round %d", i, round);
        }
    }
    for (int i = 0; i < MANY; i++) {
        shutdown(fds[i], SHUT_WR);
        if (recv(fds[i], &byte, 1, 0) != 0)
            note("no end on %d", i);
        close(fds[i]);
    }
}

static int answer(int fd) {
    unsigned char value;
    ssize_t got = recv(fd, &value, 1, 0);
    if (got == 1) {
        value++;
        send(fd, &value, 1, 0);
    }
    return (int)got;
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t child = start_role("client", port);
    struct pollfd list[MANY];
    for (int i = 0; i < MANY; i++)
        list[i] = (struct pollfd){accept_one(listener), POLLIN, 0};
    int answers = 0, ends = 0;
    while (answers < MANY * ROUNDS) {
        if (poll(list, MANY, PATIENCE_MS) <= 0)
            die("poll");
        for (int i = 0; i < MANY; i++)
            if (list[i].revents)
                answers += answer(list[i].fd) == 1;
    }
    DO(answers);
    int set = epoll_create1(0);
    for (int i = 0; i < MANY; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = list[i].fd};
        epoll_ctl(set, EPOLL_CTL_ADD, list[i].fd, &event);
    }
    while (ends < MANY) {
        struct epoll_event events[16];
        int count = epoll_wait(set, events, 16, PATIENCE_MS);
        if (count <= 0)
            die("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (answer(events[i].data.fd) == 1)
                answers++;
            else
                ends++, close(events[i].data.fd);
        }
    }
    DO(answers);
    DO(ends);
    note_end("the client", child);
}
