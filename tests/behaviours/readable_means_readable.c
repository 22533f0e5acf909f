/* Readable means that the next read gives something. The first bytes of each message are held back by the kernel (TCP_NODELAY
 * is off, acknowledgements are late), and the last ones follow after a while: a connection may have moved in between. */
#define OWN_ROLES
#include "behaviour.h"

enum { CONNECTIONS = 3, ROUNDS = 5, LENGTH = 4, LIMIT = 10000 };

struct counts {
    int bytes, empty, few, wrong;
};

/* Waits in one of five ways, each at both ends. */
enum way { POLL, SELECT, LEVEL, EDGE, LOW_WATER, WAYS };
static const char *const names[] = {"poll", "select", "epoll", "epoll, edges", "low-water mark"};

static int await(enum way way, int set, int fd) {
    struct pollfd entry = {fd, POLLIN, 0};
    struct timeval time = {LIMIT / 1000, 0};
    struct epoll_event event;
    fd_set reads;
    switch (way) {
    case SELECT:
        FD_ZERO(&reads);
        FD_SET(fd, &reads);
        return select(fd + 1, &reads, NULL, NULL, &time);
    case LEVEL:
    case EDGE:
        return epoll_wait(set, &event, 1, LIMIT);
    default:
        return poll(&entry, 1, LIMIT);
    }
}

static void receive(enum way way, int set, int fd, struct counts *counts) {
    char bytes[16], seen;
    for (int got = 0; got < LENGTH;) {
        int there = 0, wanted = way == LOW_WATER && LENGTH - got > 1 ? 2 : 1;
        if (way == LOW_WATER)
            set_int(fd, SOL_SOCKET, SO_RCVLOWAT, wanted);
        set_int(fd, IPPROTO_TCP, TCP_QUICKACK, 0);
        if (await(way, set, fd) != 1)
            die("the wait ends");
        ioctl(fd, FIONREAD, &there);
        counts->few += there < wanted;
        counts->empty += recv(fd, &seen, 1, MSG_PEEK | MSG_DONTWAIT) != 1;
        ssize_t count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        counts->empty += count < 0;
        counts->few += count > 0 && count < there;
        for (int at = 0; at < count; at++)
            counts->wrong += bytes[at] != 'a' + got + at;
        got += count > 0 ? count : 0;
        counts->bytes += count > 0 ? count : 0;
        while (way == EDGE && got < LENGTH && (count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
            got += count, counts->bytes += count;
    }
}

/* Two bytes, of which the second is held back until the first is acknowledged; the others later. */
static void transmit(int fd) {
    for (int at = 0; at < LENGTH; at++) {
        char byte = 'a' + at;
        if (at == 2)
            pause_ms(4);
        if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            die("send");
    }
}

static struct counts exchange(enum way way, int fd, int first) {
    struct counts counts = {0};
    struct epoll_event event = {.events = way == EDGE ? EPOLLIN | EPOLLET : EPOLLIN};
    int set = epoll_create1(0);
    if (way == LEVEL || way == EDGE)
        epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    for (int round = 0; round < ROUNDS; round++) {
        if (first)
            transmit(fd);
        receive(way, set, fd, &counts);
        if (!first)
            transmit(fd);
    }
    close(set);
    close(fd);
    return counts;
}

static void add(struct counts *sum, struct counts more) {
    sum->bytes += more.bytes, sum->empty += more.empty, sum->few += more.few, sum->wrong += more.wrong;
}

static void tell(const char *name, struct counts sum) {
    note("%s: %d bytes, %d times nothing, %d times less than was told, %d wrong", name, sum.bytes, sum.empty, sum.few,
         sum.wrong);
}

static void role(const char *name, int port) {
    struct counts sum = {0};
    for (int i = 0; i < CONNECTIONS; i++)
        add(&sum, exchange(atoi(name), dial(AF_INET, port), 1));
    if (sum.empty || sum.few || sum.wrong || sum.bytes != CONNECTIONS * ROUNDS * LENGTH)
        tell(names[atoi(name)], sum);
}

struct server {
    enum way way;
    int listener;
    pid_t client;
    pthread_t thread;
    struct counts sum;
};

static void *serve(void *argument) {
    struct server *server = argument;
    me = &server_side;
    for (int i = 0; i < CONNECTIONS; i++)
        add(&server->sum, exchange(server->way, accept_one(server->listener), 0));
    return NULL;
}

static void behaviour(void) {
    struct server servers[WAYS] = {0};
    for (int way = 0; way < WAYS; way++) {
        int port;
        char name[2] = {'0' + way};
        servers[way].way = way;
        servers[way].listener = listen_somewhere(AF_INET, &port);
        fcntl(servers[way].listener, F_SETFD, FD_CLOEXEC);
        servers[way].client = start_role(name, port);
    }
    for (int way = 0; way < WAYS; way++)
        if (pthread_create(&servers[way].thread, NULL, serve, &servers[way]))
            die("pthread_create");
    for (int way = 0; way < WAYS; way++) {
        pthread_join(servers[way].thread, NULL);
        tell(names[way], servers[way].sum);
        note_end("the client", servers[way].client);
    }
}
