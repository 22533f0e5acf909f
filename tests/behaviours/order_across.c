/* What is sent first is told first, also if the first connection is on TCP and the second has left it. One client has a
 * connection that only the kernel can carry, and one that may leave; the server waits for both in several ways. The kernel
 * tells edges one after the other, in the order in which they came; all else it tells of together. */
#define OWN_ROLES
#include "behaviour.h"

enum { ROUNDS = 400, WARM = 40, LIMIT = 10000 };

enum way { LEVELS, RINGS, EDGES, POLL, SELECT, READ, ACCEPT, CLOSE, WAYS };
static const char *const names[] = {"epoll",  "epoll, both may leave", "epoll, edges", "poll",
                                    "select", "no wait",               "accept",       "close"};

/* What a thread sends over loopback waits with the processor that it is on. One that moves in between may see the second overtake
 * the first. */
static void stay(void) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
}

/* The client: a byte on the first connection, then one on the second, which is answered. */
static void role(const char *name, int port) {
    enum way way = atoi(name);
    stay();
    int first = dial(AF_INET, port), second = dial(AF_INET, port);
    char byte = 0;
    /* An option that only the kernel can carry out. */
    if (way != RINGS)
        set_int(first, SOL_SOCKET, SO_TIMESTAMP, 1);
    set_int(first, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(second, IPPROTO_TCP, TCP_NODELAY, 1);
    for (int i = 0; i < ROUNDS + WARM; i++) {
        int other = -1;
        if (i < WARM && way == RINGS && (send(first, "1", 1, 0) != 1 || recv(first, &byte, 1, 0) != 1))
            break;
        if (i >= WARM) {
            if (way == ACCEPT || way == CLOSE)
                other = dial(AF_INET, port);
            if (way == CLOSE) {
                /* Accepted before it is closed. */
                if (send(second, "o", 1, 0) != 1 || recv(second, &byte, 1, 0) != 1)
                    break;
                close(other), other = -1;
            } else if (way != ACCEPT && send(first, "1", 1, 0) != 1) {
                break;
            }
        }
        if (send(second, "2", 1, 0) != 1 || recv(second, &byte, 1, 0) != 1)
            break;
        if (other >= 0)
            close(other);
    }
    if (byte != 'k')
        note("%s: ended early", name);
}

struct server {
    int set, listener, first, second;
    enum way way;
};

static int is_level(enum way way) { return way == LEVELS || way == RINGS; }

/* Waits until one of the two, or the listener, has something; returns which the program is told of first. */
static int await(struct server *server) {
    struct epoll_event events[8];
    struct pollfd list[] = {{server->second, POLLIN, 0}, {server->first, POLLIN, 0}, {server->listener, POLLIN, 0}};
    struct timeval time = {LIMIT / 1000, 0};
    fd_set reads;
    int count;
    char byte;
    switch (server->way) {
    case POLL:
        count = poll(list, 3, LIMIT);
        return count < 1 ? -1 : list[1].revents ? server->first : server->second;
    case SELECT:
        FD_ZERO(&reads);
        FD_SET(server->first, &reads), FD_SET(server->second, &reads);
        count = select((server->first > server->second ? server->first : server->second) + 1, &reads, NULL, NULL, &time);
        return count < 1 ? -1 : FD_ISSET(server->first, &reads) ? server->first : server->second;
    case READ:
        while (recv(server->second, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
            sched_yield();
        return recv(server->first, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 ? server->first : server->second;
    default:
        count = epoll_wait(server->set, events, is_level(server->way) ? 8 : 1, LIMIT);
        for (int at = 0; at < count; at++)
            for (int before = 0; before < at; before++)
                if (events[at].data.fd == events[before].data.fd)
                    note("%d is told of twice", events[at].data.fd);
        for (int at = 1; at < count; at++)
            if (events[at].data.fd == server->first)
                return server->first;
        return count < 1 ? -1 : events[0].data.fd;
    }
}

static int take(int fd) {
    char byte;
    return recv(fd, &byte, 1, 0) == 1 ? byte : 0;
}

static void add(struct server *server, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (!is_level(server->way))
        event.events |= EPOLLET;
    if (epoll_ctl(server->set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
}

static void answer(int fd) {
    if (send(fd, "k", 1, MSG_NOSIGNAL) != 1)
        die("send");
}

static void serve(enum way way) {
    int port, wrong = 0, rounds = 0;
    struct server server = {.set = epoll_create1(EPOLL_CLOEXEC), .way = way};
    server.listener = listen_somewhere(AF_INET, &port);
    fcntl(server.listener, F_SETFD, FD_CLOEXEC);
    char name[2] = {'0' + way};
    pid_t client = start_role(name, port);
    server.first = accept_one(server.listener), server.second = accept_one(server.listener);
    /* The kernel looks at one after the other: at the second one first, or both could come in between. */
    if (way == SELECT) {
        int above = fcntl(server.first, F_DUPFD_CLOEXEC, server.second + 1);
        if (above < 0)
            die("F_DUPFD_CLOEXEC");
        close(server.first), server.first = above;
    }
    set_int(server.second, IPPROTO_TCP, TCP_NODELAY, 1);
    add(&server, server.listener), add(&server, server.first), add(&server, server.second);
    for (int i = 0; i < WARM; i++) {
        if (way == RINGS)
            await(&server), take(server.first), answer(server.first);
        if (way != READ && await(&server) != server.second)
            die("warming up");
        take(server.second), answer(server.second);
    }
    for (; rounds < ROUNDS; rounds++) {
        int other = -1, told = -1;
        if (way == ACCEPT || way == CLOSE) {
            told = await(&server);
            wrong += told != server.listener;
            other = accept_one(server.listener);
            if (way == CLOSE) {
                add(&server, other);
                if ((told != server.second && await(&server) != server.second) || take(server.second) != 'o')
                    die("open");
                answer(server.second);
                told = await(&server);
                wrong += told != other;
                if (take(other) != 0)
                    die("the end");
                close(other), other = -1;
            }
        } else {
            told = await(&server);
            wrong += told != server.first;
            if (take(server.first) != '1')
                die("the first");
        }
        if (told < 0)
            die("the wait ends");
        if (way != READ && told != server.second && await(&server) != server.second)
            die("the second is not told of");
        if (take(server.second) != '2')
            die("the second");
        if (other >= 0)
            close(other);
        answer(server.second);
    }
    note("%s: %d rounds, %d in the wrong order", names[way], rounds, wrong);
    note_end("the client", client);
    close(server.set), close(server.listener), close(server.first), close(server.second);
}

static void behaviour(void) {
    for (int way = 0; way < WAYS; way++)
        serve(way);
}
