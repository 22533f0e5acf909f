/* One of several programs that talk to each other while processes are killed, stopped, forked and executed:
 *
 *   node PLACE SEED PORT LISTENER      serves at PORT (with this descriptor, or -1) and talks to the others
 *   node go-on TALK                    goes on with a talk that another process began
 *
 * Every byte of a talk follows from its seed and its position, and is compared. Lines on standard output, each by one write:
 * "ready", "paused", "done", "cut PEER BEGAN HOW" (the stream ended early: fine if a process of either side was killed since
 * BEGAN, which is in nanoseconds), and "wrong ..." for what no kill explains. Lines on standard input: "peer PLACE PORT", "pause",
 * "go". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 16, CLIENTS = 3, GENERATIONS = 4, LARGEST = 65536 };
enum shape { TURNS, UP, DOWN, BOTH, SHAPES };
enum wait { BLOCK, POLL, LEVEL, EDGE, WAITS };

/* What a client says first. */
struct greeting {
    uint64_t magic, seed, began;
    uint64_t total;
    uint32_t from, shape, piece, zero;
};
static const uint64_t MAGIC = 0x5349444553544550;

/* One end of a conversation, as one process hands it to the next. */
struct talk {
    struct greeting greeting;
    uint64_t sent, received, random;
    int fd, peer, serves, greeted, wait, generation;
    /* What was done at each generation, and how far it had come. */
    struct {
        uint64_t what, sent, received;
    } past[GENERATIONS + 2];
};

static const char *const deeds[] = {"fork", "exec", "turn", "idle child"};
static int place, listener;
static char program[4096];

static void say(const char *form, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *form, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, form);
    int length = vsnprintf(line, sizeof line - 1, form, arguments);
    va_end(arguments);
    line[length++] = '\n';
    if (write(1, line, length) != length)
        _exit(4);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static uint64_t below(uint64_t *random, uint64_t limit) {
    *random += 0x9e3779b97f4a7c15;
    return mixed(*random) % limit;
}

/* The number that was mixed to this one. */
static uint64_t unmixed(uint64_t x) {
    x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3;
    x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089;
    return x ^ x >> 30 ^ x >> 60;
}

/* What a direction carries at a position. */
static void fill(uint64_t seed, uint64_t position, unsigned char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++, position++)
        bytes[i] = mixed(seed + (position >> 3)) >> 8 * (position & 7);
}

/* From which position of a direction these bytes are; -1: from none. */
static long long origin_of(uint64_t seed, uint64_t total, const unsigned char *bytes, size_t length) {
    for (size_t at = 0; at < 8 && at + 8 <= length; at++) {
        uint64_t word = 0;
        for (int i = 7; i >= 0; i--)
            word = word << 8 | bytes[at + i];
        uint64_t position = (unmixed(word) - seed) * 8;
        if (position < total && position >= at)
            return position - at;
    }
    return -1;
}

static uint64_t seed_of(const struct talk *talk, int of_server) {
    return of_server ? ~talk->greeting.seed : talk->greeting.seed;
}

static uint64_t to_send(const struct talk *talk) {
    return talk->greeting.shape == (talk->serves ? UP : DOWN) ? 0 : talk->greeting.total;
}

static uint64_t to_receive(const struct talk *talk) {
    return talk->greeting.shape == (talk->serves ? DOWN : UP) ? 0 : talk->greeting.total;
}

/* Bytes that may be sent now. */
static uint64_t allowed(const struct talk *talk) {
    uint64_t limit = to_send(talk), piece = talk->greeting.piece;
    if (talk->greeting.shape == TURNS) {
        uint64_t turn = (talk->received / piece + !talk->serves) * piece;
        limit = turn < limit ? turn : limit;
    }
    return limit - talk->sent;
}

/* What has become of a talk before. */
static const char *past_of(const struct talk *talk) {
    static __thread char past[200];
    past[0] = 0;
    for (int i = 0, at = 0; i < talk->generation && at < 150; i++)
        at += snprintf(past + at, sizeof past - at, " %s at %llu and %llu,", deeds[talk->past[i].what],
                       (unsigned long long)talk->past[i].sent, (unsigned long long)talk->past[i].received);
    return past;
}

/* The state of a connection, as the kernel has it: 7 if it was reset. */
static int state_of(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0 ? -1 : info.tcpi_state;
}

/* The stream has ended early, or something is wrong. */
static int broken(const struct talk *talk, const char *call, ssize_t result) {
    int error = errno;
    /* After a reset that nobody was told of, shutdown finds no connection. */
    if (result == 0 || error == ECONNRESET || error == EPIPE || error == ENOTCONN)
        say("cut %d %llu %s %s: %s%s process %d, wait %d, state %d, after %llu and %llu of %llu", talk->peer,
            (unsigned long long)talk->greeting.began, call, result == 0 ? "EOF" : strerrorname_np(error),
            talk->serves ? "server" : "client", past_of(talk), getpid(), talk->wait, state_of(talk->fd), (unsigned long long)talk->sent,
            (unsigned long long)talk->received, (unsigned long long)talk->greeting.total);
    else
        say("wrong %s: %s", call, strerrorname_np(error));
    return 0;
}

static ssize_t take(int fd, void *bytes, size_t length, int flags, uint64_t choice) {
    struct iovec parts[2] = {{bytes, length / 2}, {(char *)bytes + length / 2, length - length / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (choice == 0 && !flags)
        return read(fd, bytes, length);
    return choice == 1 ? recvmsg(fd, &message, flags) : recv(fd, bytes, length, flags);
}

static ssize_t give(int fd, const void *bytes, size_t length, int flags, uint64_t choice) {
    struct iovec parts[2] = {{(void *)bytes, length / 2}, {(char *)bytes + length / 2, length - length / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (choice == 0 && !flags)
        return write(fd, bytes, length);
    return choice == 1 ? sendmsg(fd, &message, flags | MSG_NOSIGNAL) : send(fd, bytes, length, flags | MSG_NOSIGNAL);
}

/* Whether a call that gave this is to be made again later. */
static int later(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EINTR); }

static int receive_some(struct talk *talk, int flags, int *progress) {
    static __thread unsigned char bytes[LARGEST], expected[LARGEST];
    uint64_t left = to_receive(talk) - talk->received, most = 1 + below(&talk->random, LARGEST);
    ssize_t got = take(talk->fd, bytes, left < most ? left : most, flags, below(&talk->random, 3));
    if (later(got))
        return 1;
    if (got <= 0)
        return broken(talk, "receive", got);
    fill(seed_of(talk, !talk->serves), talk->received, expected, got);
    if (memcmp(bytes, expected, got)) {
        ssize_t at = 0;
        while (bytes[at] == expected[at])
            at++;
        say("wrong byte at %llu of %llu, where %lld came, shape %u, from place %d, %s%s", (unsigned long long)(talk->received + at),
            (unsigned long long)talk->greeting.total,
            origin_of(seed_of(talk, !talk->serves), talk->greeting.total, bytes + at, got - at), talk->greeting.shape, talk->peer,
            talk->serves ? "server" : "client", past_of(talk));
        return 0;
    }
    talk->received += got;
    *progress = 1;
    return 1;
}

static int send_some(struct talk *talk, int flags, int *progress) {
    static __thread unsigned char bytes[LARGEST];
    uint64_t left = allowed(talk), most = 1 + below(&talk->random, LARGEST);
    size_t length = left < most ? left : most;
    fill(seed_of(talk, talk->serves), talk->sent, bytes, length);
    ssize_t sent = give(talk->fd, bytes, length, flags, below(&talk->random, 3));
    if (later(sent))
        return 1;
    if (sent < 0)
        return broken(talk, "send", sent);
    talk->sent += sent;
    *progress = 1;
    return 1;
}

/* Waits until something can go on, in this talk's way. The set is made when it is first needed. */
static void wait_for_news(const struct talk *talk, int *set) {
    int wants = (talk->received < to_receive(talk) ? POLLIN : 0) | (allowed(talk) ? POLLOUT : 0);
    if (talk->wait == POLL || talk->wait == BLOCK) {
        struct pollfd entry = {talk->fd, wants, 0};
        poll(&entry, 1, -1);
        return;
    }
    /* EPOLLIN and POLLIN have one value, and so have EPOLLOUT and POLLOUT. */
    struct epoll_event event = {.events = talk->wait == EDGE ? EPOLLIN | EPOLLOUT | EPOLLET : (uint32_t)wants};
    if (*set < 0) {
        *set = epoll_create1(EPOLL_CLOEXEC);
        if (epoll_ctl(*set, EPOLL_CTL_ADD, talk->fd, &event) < 0)
            say("wrong epoll_ctl: %s", strerrorname_np(errno));
    } else if (talk->wait == LEVEL) {
        epoll_ctl(*set, EPOLL_CTL_MOD, talk->fd, &event);
    }
    epoll_wait(*set, &event, 1, -1);
}

/* Goes on until both directions are done, or so many steps. */
static int converse(struct talk *talk, uint64_t steps) {
    int set = -1, fine = 1;
    while (fine && steps-- && (talk->received < to_receive(talk) || talk->sent < to_send(talk))) {
        int blocks = talk->wait == BLOCK && talk->greeting.shape != BOTH, progress = 0;
        if (allowed(talk))
            fine = send_some(talk, blocks ? 0 : MSG_DONTWAIT, &progress);
        if (fine && talk->received < to_receive(talk) && !(blocks && allowed(talk)))
            fine = receive_some(talk, blocks ? 0 : MSG_DONTWAIT, &progress);
        if (fine && !progress && !blocks)
            wait_for_news(talk, &set);
    }
    if (set >= 0)
        close(set);
    return fine;
}

/* Everything has been said: each learns that the other knows it. */
static int part(struct talk *talk) {
    uint64_t word = 0;
    ssize_t got;
    if (!talk->serves && shutdown(talk->fd, SHUT_WR) < 0)
        return broken(talk, "shutdown", -1);
    if (talk->serves) {
        while (later(got = take(talk->fd, &word, sizeof word, 0, 2)))
            ;
        if (got < 0)
            return broken(talk, "receive the end", got);
        if (got > 0)
            return say("wrong end: %zd bytes more", got), 0;
        word = ~talk->greeting.seed;
        if ((got = give(talk->fd, &word, sizeof word, 0, 2)) != sizeof word)
            return broken(talk, "send the last word", got);
        return 1;
    }
    for (size_t done = 0; done < sizeof word; done += got > 0 ? got : 0)
        if ((got = take(talk->fd, (char *)&word + done, sizeof word - done, 0, 2)) <= 0 && !later(got))
            return broken(talk, "receive the last word", got);
    if (word != ~talk->greeting.seed)
        return say("wrong last word"), 0;
    while (later(got = take(talk->fd, &word, sizeof word, 0, 2)))
        ;
    return got == 0 ? 1 : got > 0 ? (say("wrong: bytes behind the end"), 0) : broken(talk, "receive the end", got);
}

static int greet(struct talk *talk) {
    char *bytes = (char *)&talk->greeting;
    for (size_t done = 0; done < sizeof talk->greeting;) {
        ssize_t moved = talk->serves ? take(talk->fd, bytes + done, sizeof talk->greeting - done, 0, 2)
                                     : give(talk->fd, bytes + done, sizeof talk->greeting - done, 0, 2);
        if (later(moved))
            continue;
        if (moved <= 0) {
            /* Nobody knows yet who that is: the other end tells. */
            if (!talk->serves)
                return broken(talk, "send", moved);
            return 0;
        }
        done += moved;
    }
    if (talk->greeting.magic != MAGIC)
        return say("wrong greeting"), 0;
    if (talk->serves)
        talk->peer = talk->greeting.from;
    talk->greeted = 1;
    return 1;
}

static void execute(const struct talk *talk) {
    char text[2 * sizeof *talk + 1], here[16];
    for (size_t i = 0; i < sizeof *talk; i++)
        sprintf(text + 2 * i, "%02x", ((const unsigned char *)talk)[i]);
    sprintf(here, "%d", place);
    fcntl(talk->fd, F_SETFD, 0);
    execl(program, program, "go-on", here, text, NULL);
    say("wrong exec: %s", strerrorname_np(errno));
    _exit(4);
}

static int hold(struct talk *talk);

/* In a child: the only descriptor that it goes on with. */
static void keep_only(const struct talk *talk, int and) {
    int low = talk->fd < and ? talk->fd : and, high = talk->fd < and ? and : talk->fd;
    low = low < 3 ? high : low;
    close_range(3, low - 1, 0);
    if (high > low)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0u, 0);
}

/* Another process goes on: forked, or forked and executed; or both, one after the other. */
static int hand_over(struct talk *talk, uint64_t what) {
    int ends[2] = {-1, -1}, status;
    talk->past[talk->generation].what = what;
    talk->past[talk->generation].sent = talk->sent;
    talk->past[talk->generation].received = talk->received;
    talk->generation++;
    if (what == 2 && pipe2(ends, O_CLOEXEC) < 0)
        return say("wrong pipe: %s", strerrorname_np(errno)), 0;
    pid_t child = fork();
    if (child < 0)
        return say("wrong fork: %s", strerrorname_np(errno)), 0;
    if (child == 0) {
        if (what == 3) {
            usleep(below(&talk->random, 5000));
            _exit(0);
        }
        keep_only(talk, what == 2 ? ends[1] : talk->fd);
        if (what == 1)
            execute(talk);
        if (what == 2) {
            /* The child some way, and then its parent again. */
            int fine = converse(talk, 1 + below(&talk->random, 40));
            if (fine && write(ends[1], talk, sizeof *talk) != sizeof *talk)
                fine = 0;
            _exit(!fine);
        }
        _exit(!hold(talk));
    }
    if (what == 2) {
        struct talk next;
        close(ends[1]);
        ssize_t got;
        while ((got = read(ends[0], &next, sizeof next)) < 0 && errno == EINTR)
            ;
        close(ends[0]);
        if (got == sizeof next)
            *talk = next;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (got != sizeof next && WIFSIGNALED(status))
            say("cut %d %llu killed", place, (unsigned long long)talk->greeting.began);
        return got == sizeof next;
    }
    if (what == 3) {
        int fine = hold(talk);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        return fine;
    }
    close(talk->fd);
    talk->fd = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        say(WTERMSIG(status) == SIGKILL ? "cut %d %llu killed by %d" : "wrong: place %d, began %llu, ended by signal %d", place,
            (unsigned long long)talk->greeting.began, WTERMSIG(status));
    return 0;
}

/* All of a talk, from where it is. Says how it ended, once, in whatever process that is. */
static int hold(struct talk *talk) {
    if (!talk->greeted && !greet(talk))
        return 0;
    while (talk->generation < GENERATIONS && below(&talk->random, 3) == 0) {
        if (!converse(talk, 1 + below(&talk->random, 200)))
            return 0;
        uint64_t what = below(&talk->random, 4);
        if (what != 2)
            return hand_over(talk, what);
        if (!hand_over(talk, what))
            return 0;
    }
    if (!converse(talk, UINT64_MAX) || !part(talk))
        return 0;
    say("done");
    return 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ports[PLACES], paused = 1, talking;
static uint64_t seeds;

static uint64_t next_seed(void) {
    pthread_mutex_lock(&lock);
    uint64_t seed = mixed(seeds += 0x9e3779b97f4a7c15);
    pthread_mutex_unlock(&lock);
    return seed;
}

static void *serve(void *argument) {
    struct talk talk = *(struct talk *)argument;
    free(argument);
    /* A thread, a child, or a program. */
    if (below(&talk.random, 3) == 0)
        hand_over(&talk, below(&talk.random, 2));
    else
        hold(&talk);
    if (talk.fd >= 0)
        close(talk.fd);
    return NULL;
}

static void *accept_all(void *argument) {
    (void)argument;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EINTR && errno != ECONNABORTED)
                say("wrong accept: %s", strerrorname_np(errno)), exit(4);
            continue;
        }
        struct talk *talk = calloc(1, sizeof *talk);
        *talk = (struct talk){.random = next_seed(), .fd = fd, .peer = -1, .serves = 1};
        talk->greeting.began = now();
        talk->wait = below(&talk->random, WAITS);
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, talk) != 0)
            say("wrong thread"), exit(4);
        pthread_detach(thread);
    }
}

static void *talk_to_all(void *argument) {
    (void)argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (paused)
            pthread_cond_wait(&changed, &lock);
        talking++;
        pthread_mutex_unlock(&lock);
        struct talk talk = {.random = next_seed()};
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        do
            talk.peer = below(&talk.random, PLACES);
        while (!ports[talk.peer]);
        address.sin_port = htons(ports[talk.peer]);
        talk.wait = below(&talk.random, WAITS);
        talk.greeting = (struct greeting){.magic = MAGIC, .seed = next_seed(), .began = now(), .from = place};
        talk.greeting.shape = below(&talk.random, SHAPES);
        talk.greeting.piece = 1 + below(&talk.random, below(&talk.random, 4) ? 300 : LARGEST);
        talk.greeting.total = talk.greeting.piece * (1 + below(&talk.random, 200));
        talk.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(talk.fd, (struct sockaddr *)&address, sizeof address) == 0)
            hold(&talk);
        else if (errno != ECONNREFUSED && errno != ECONNRESET && errno != EINTR)
            say("wrong connect: %s", strerrorname_np(errno));
        else
            usleep(10000);
        if (talk.fd >= 0)
            close(talk.fd);
        pthread_mutex_lock(&lock);
        if (--talking == 0 && paused)
            say("paused");
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* A child does not accept, and must not keep the port from the next program. */
static void in_child(void) {
    if (listener >= 0)
        close(listener);
    listener = -1;
}

/* Listens as soon as nobody else does at this port. */
static int listen_at(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    while (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 64) < 0) {
        if (errno != EADDRINUSE)
            say("wrong listen: %s", strerrorname_np(errno)), exit(4);
        usleep(2000);
    }
    return fd;
}

static void obey(const char *line) {
    int peer, port;
    pthread_mutex_lock(&lock);
    if (sscanf(line, "peer %d %d", &peer, &port) == 2 && peer >= 0 && peer < PLACES)
        ports[peer] = port;
    else if (!strncmp(line, "go", 2))
        paused = 0;
    else if (!strncmp(line, "pause", 5) && !paused) {
        paused = 1;
        if (talking == 0)
            say("paused");
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return 2;
    if (argc == 4 && !strcmp(argv[1], "go-on")) {
        struct talk talk;
        place = atoi(argv[2]);
        for (size_t i = 0; i < sizeof talk; i++)
            if (sscanf(argv[3] + 2 * i, "%2hhx", (unsigned char *)&talk + i) != 1)
                return 2;
        return !hold(&talk);
    }
    if (argc != 5)
        return 2;
    place = atoi(argv[1]);
    seeds = strtoull(argv[2], NULL, 10);
    listener = atoi(argv[4]);
    if (listener < 0)
        listener = listen_at(atoi(argv[3]));
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pthread_t thread;
    pthread_atfork(NULL, NULL, in_child);
    pthread_create(&thread, NULL, accept_all, NULL);
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&thread, NULL, talk_to_all, NULL);
    say("ready");
    char line[128];
    while (fgets(line, sizeof line, stdin))
        obey(line);
    return 0;
}
