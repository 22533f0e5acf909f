/* One end of a judged connection: executes the socket calls it is told on standard input and reports what they gave.
 *
 *   open connect PORT OUT IN | open accept OUT IN   a connection; the salts of the two directions
 *   do CALL…                                        a call, in this thread
 *   go CALL…                                        a call, in a second thread
 *   join                                            the result of the second thread, if it has one
 *
 * A call may be preceded by "sig MS RESTART": a signal to its thread every so many milliseconds while it lasts.
 * The answer is "RESULT ERRNO GOOD MICROSECONDS": GOOD counts the bytes received that are right, or carries poll's events. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { ROOM = 1 << 20 };

static int listener, fd = -1, set = -1;
static uint64_t sent, received, salt_out, salt_in;

struct result {
    long value;
    int error;
    long good;
    long micros;
};

static void die(const char *what) {
    fprintf(stderr, "driver: %s: %s\n", what, strerror(errno));
    exit(3);
}

static int64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000ll + time.tv_nsec / 1000;
}

static unsigned char byte_at(uint64_t salt, uint64_t position) {
    uint64_t mixed = (position >> 3) * 0x9E3779B97F4A7C15ull + salt * 0xD1B54A32D192ED03ull;
    return (unsigned char)((mixed >> 29) + position * 31);
}

static void fill(unsigned char *bytes, uint64_t salt, uint64_t position, size_t length) {
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(salt, position + i);
}

static long right(const unsigned char *bytes, uint64_t salt, uint64_t position, long length) {
    for (long i = 0; i < length; i++)
        if (bytes[i] != byte_at(salt, position + i))
            return i;
    return length;
}

/* Cuts a buffer into a few parts, unevenly. */
static int cut(struct iovec *parts, unsigned char *bytes, size_t length) {
    size_t first = length / 3, second = (length - first) / 2;
    parts[0] = (struct iovec){bytes, first};
    parts[1] = (struct iovec){NULL, 0};
    parts[2] = (struct iovec){bytes + first, second};
    parts[3] = (struct iovec){bytes + first + second, length - first - second};
    return 4;
}

static long call_send(const char *call, unsigned char *bytes, size_t length, int flags) {
    struct iovec parts[4];
    struct mmsghdr list = {{0}, 0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = cut(parts, bytes, length)};
    switch (call[0]) {
    case 'w':
        return write(fd, bytes, length);
    case 'v':
        return writev(fd, parts, 4);
    case 'm':
        return sendmsg(fd, &message, flags);
    case 'l':
        list.msg_hdr = message;
        return sendmmsg(fd, &list, 1, flags) < 0 ? -1 : (long)list.msg_len;
    case 't':
        return sendto(fd, bytes, length, flags, NULL, 0);
    case 'f': {
        off_t offset = 0;
        int file = memfd_create("judge", 0);
        if (file < 0 || write(file, bytes, length) != (ssize_t)length)
            die("file");
        long result = sendfile(fd, file, &offset, length);
        int error = errno;
        close(file);
        errno = error;
        return result;
    }
    case 'c':
        return syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
    default:
        return send(fd, bytes, length, flags);
    }
}

static long call_receive(const char *call, unsigned char *bytes, size_t length, int flags) {
    struct iovec parts[4];
    struct mmsghdr list = {{0}, 0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = cut(parts, bytes, length)};
    switch (call[0]) {
    case 'w':
        return read(fd, bytes, length);
    case 'v':
        return readv(fd, parts, 4);
    case 'm':
        return recvmsg(fd, &message, flags);
    case 'l':
        list.msg_hdr = message;
        return recvmmsg(fd, &list, 1, flags, NULL) < 0 ? -1 : (long)list.msg_len;
    case 't':
        return recvfrom(fd, bytes, length, flags, NULL, NULL);
    case 'c':
        return syscall(SYS_recvfrom, fd, bytes, length, flags, NULL, NULL);
    default:
        return recv(fd, bytes, length, flags);
    }
}

static unsigned next_random(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

struct storm {
    unsigned seed;
    uint64_t total;
    int stop;
    const char *wrong;
};

static void *storm_writes(void *argument) {
    static __thread unsigned char bytes[70000];
    static const char *calls[] = {"s", "w", "v", "m", "t", "l", "c"};
    struct storm *storm = argument;
    for (uint64_t end = sent + storm->total; sent < end;) {
        unsigned kind = next_random(&storm->seed) % 4;
        size_t length = 1 + next_random(&storm->seed) % (kind == 0 ? 65536 : kind == 1 ? 4096 : 200);
        if (length > end - sent)
            length = end - sent;
        fill(bytes, salt_out, sent, length);
        const char *call = calls[next_random(&storm->seed) % 7];
        int flags = MSG_NOSIGNAL | (next_random(&storm->seed) % 8 == 0 && call[0] != 'w' && call[0] != 'v' ? MSG_DONTWAIT : 0);
        long got = call_send(call, bytes, length, flags);
        if (got < 0 && errno == EAGAIN) {
            struct pollfd entry = {fd, POLLOUT, 0};
            if (poll(&entry, 1, 20000) == 0)
                return storm->wrong = "never writable", NULL;
        } else if (got < 0 && errno != EINTR)
            return storm->wrong = strerrorname_np(errno), NULL;
        else if (got > (long)length)
            return storm->wrong = "sent more than asked", NULL;
        else if (got > 0)
            sent += got;
    }
    return NULL;
}

/* Says which bytes of the stream came in place of those that were due: the nearest that are alike. */
static void tell_wrong(const char *call, int flags, const unsigned char *bytes, long got) {
    long good = right(bytes, salt_in, received, got), rest = got - good < 512 ? got - good : 512;
    long long due = received + good, away = 0;
    for (long long by = 1; by < ROOM * 8 && away == 0; by++)
        for (int sign = -1; sign <= 1; sign += 2)
            if (due + sign * by >= 0 && right(bytes + good, salt_in, due + sign * by, rest) == rest)
                away = sign * by;
    fprintf(stderr, "driver: %s with flags %#x gave %ld bytes behind %llu, %ld of them right; the next %ld are those %lld away\n", call, flags,
            got, (unsigned long long)received, good, rest, away);
}

static const char *storm_reads(struct storm *storm) {
    static __thread unsigned char bytes[70000];
    static const char *calls[] = {"s", "w", "v", "m", "t", "l", "c"};
    unsigned seed = storm->seed ^ 0x5555;
    for (uint64_t end = received + storm->total; received < end;) {
        size_t length = 1 + next_random(&seed) % (next_random(&seed) % 3 ? 65536 : 100);
        if (length > end - received)
            length = end - received;
        unsigned how = next_random(&seed) % 10;
        const char *call = calls[next_random(&seed) % 7];
        int flags = how == 1 ? MSG_PEEK : how == 2 ? MSG_WAITALL : how == 3 ? MSG_DONTWAIT : 0;
        if (call[0] == 'w' || call[0] == 'v')
            flags = 0;
        if (how == 4 || how == 3) {
            struct pollfd entry = {fd, POLLIN, 0};
            int count = poll(&entry, 1, 20000);
            if (count == 0)
                return "nothing came in 20 s, says poll";
        }
        if (how == 5) {
            struct epoll_event event;
            if (set >= 0 && epoll_wait(set, &event, 1, 20000) == 0)
                return "nothing came in 20 s, says epoll_wait";
        }
        if (how == 6) {
            fd_set in;
            FD_ZERO(&in);
            FD_SET(fd, &in);
            struct timeval time = {20, 0};
            if (select(fd + 1, &in, NULL, NULL, &time) == 0)
                return "nothing came in 20 s, says select";
        }
        long got = call_receive(call, bytes, length, flags);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return strerrorname_np(errno);
        if (got == 0)
            return "the end";
        if (got > (long)length)
            return "received more than asked";
        if (right(bytes, salt_in, received, got) != got)
            return tell_wrong(call, flags, bytes, got), "wrong bytes";
        if (!(flags & MSG_PEEK))
            received += got;
    }
    return NULL;
}

static void nothing(int number) { (void)number; }

/* Both directions at once, in two threads, with all kinds of calls and a timer's signals. */
static struct result storm(unsigned seed, uint64_t out, uint64_t in) {
    struct storm writes = {seed, out, 0, NULL}, reads = {seed * 7 + 1, in, 0, NULL};
    pthread_t thread;
    if (set >= 0)
        close(set);
    set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
    pthread_create(&thread, NULL, storm_writes, &writes);
    const char *wrong = storm_reads(&reads);
    pthread_join(thread, NULL);
    close(set);
    set = -1;
    if (wrong || writes.wrong)
        fprintf(stderr, "driver: storm: reading %s, writing %s; sent %llu, received %llu\n", wrong ? wrong : "well",
                writes.wrong ? writes.wrong : "well", (unsigned long long)sent, (unsigned long long)received);
    return (struct result){wrong || writes.wrong ? -1 : 0, 0, 0, 0};
}

static int set_option(int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof value); }

/* Waits until the readable bytes and the events within a mask are as expected. If they never are: -1, with the bytes in
 * place of an error. */
static struct result settle(long bytes, int mask, int events) {
    int there = -1;
    struct pollfd entry = {fd, (short)(POLLIN | POLLOUT | POLLRDHUP), 0};
    for (int64_t end = now_us() + 3000000;;) {
        if (poll(&entry, 1, 0) < 0 || ioctl(fd, FIONREAD, &there) < 0)
            return (struct result){-1, errno, 0, 0};
        if (there == bytes && (entry.revents & mask) == events)
            return (struct result){0, 0, entry.revents, 0};
        if (now_us() > end)
            return (struct result){-1, there, entry.revents, 0};
        usleep(100);
    }
}

static struct result execute(char *line) {
    static __thread unsigned char *bytes;
    struct result result = {-1, 0, 0, 0};
    char word[16] = "", call[16] = "";
    long a = 0, b = 0, c = 0;
    if (!bytes)
        bytes = malloc(ROOM);
    if (sscanf(line, "%15s", word) != 1)
        die("a call without a word");
    const char *rest = line + strlen(word);
    errno = 0;
    if (!strcmp(word, "send") && sscanf(rest, "%15s %ld %ld", call, &a, &b) == 3) {
        fill(bytes, salt_out, sent, a);
        result.value = call_send(call, bytes, a, b);
        result.error = errno;
        if (result.value > 0)
            sent += result.value;
    } else if (!strcmp(word, "recv") && sscanf(rest, "%15s %ld %ld", call, &a, &b) == 3) {
        memset(bytes, 0xee, a);
        result.value = call_receive(call, bytes, a, b);
        result.error = errno;
        if (result.value > 0) {
            result.good = b & MSG_TRUNC ? result.value : right(bytes, salt_in, received, result.value);
            if (!(b & MSG_PEEK))
                received += result.value;
        }
    } else if (!strcmp(word, "fill") && sscanf(rest, "%ld", &a) == 1) {
        /* So much it must take, however long its peer is not let on to a processor; then until it takes no more. */
        struct pollfd room = {fd, POLLOUT, 0};
        result.value = 0;
        for (long got;; result.value += got, sent += got) {
            fill(bytes, salt_out, sent, 30000);
            got = send(fd, bytes, 30000, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (got < 0 && errno == EAGAIN && result.value < a && poll(&room, 1, 120000) == 1)
                got = 0;
            else if (got <= 0 || result.value > 512l << 20) {
                result.error = errno;
                break;
            }
        }
    } else if (!strcmp(word, "drain") && sscanf(rest, "%ld", &a) == 1) {
        result.value = 0;
        while (result.value < a) {
            long want = a - result.value < ROOM ? a - result.value : ROOM;
            long got = recv(fd, bytes, want, 0);
            if (got <= 0) {
                result.error = errno;
                break;
            }
            result.good += right(bytes, salt_in, received, got);
            received += got, result.value += got;
        }
    } else if (!strcmp(word, "poll") && sscanf(rest, "%ld %ld", &a, &b) == 2) {
        struct pollfd entry = {fd, (short)a, 0};
        result.value = poll(&entry, 1, b), result.error = errno, result.good = entry.revents;
    } else if (!strcmp(word, "select") && sscanf(rest, "%ld %ld", &a, &b) == 2) {
        fd_set in, out;
        FD_ZERO(&in);
        FD_ZERO(&out);
        if (a & POLLIN)
            FD_SET(fd, &in);
        if (a & POLLOUT)
            FD_SET(fd, &out);
        struct timeval time = {b / 1000, b % 1000 * 1000};
        result.value = select(fd + 1, &in, &out, NULL, &time), result.error = errno;
        result.good = (FD_ISSET(fd, &in) ? POLLIN : 0) | (FD_ISSET(fd, &out) ? POLLOUT : 0);
    } else if (!strcmp(word, "epoll") && sscanf(rest, "%ld", &a) == 1) {
        struct epoll_event event = {0};
        result.value = epoll_wait(set, &event, 1, a), result.error = errno;
        result.good = result.value > 0 ? (long)event.events : 0;
    } else if (!strcmp(word, "ectl") && sscanf(rest, "%ld %ld", &a, &b) == 2) {
        struct epoll_event event = {.events = (uint32_t)b};
        if (set < 0)
            set = epoll_create1(EPOLL_CLOEXEC);
        result.value = epoll_ctl(set, a, fd, &event), result.error = errno;
    } else if (!strcmp(word, "shutdown") && sscanf(rest, "%ld", &a) == 1) {
        result.value = shutdown(fd, a), result.error = errno;
    } else if (!strcmp(word, "close")) {
        result.value = close(fd), result.error = errno, fd = -1;
        if (set >= 0)
            close(set), set = -1;
    } else if (!strcmp(word, "linger") && sscanf(rest, "%ld %ld", &a, &b) == 2) {
        struct linger linger = {(int)a, (int)b};
        result.value = setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), result.error = errno;
    } else if (!strcmp(word, "nonblock") && sscanf(rest, "%ld", &a) == 1) {
        int flags = fcntl(fd, F_GETFL), on = a != 0;
        result.value = a & 2 ? ioctl(fd, FIONBIO, &on) : fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
        result.error = errno;
    } else if (!strcmp(word, "timeout") && sscanf(rest, "%ld %ld", &a, &b) == 2) {
        struct timeval time = {b / 1000, b % 1000 * 1000};
        result.value = setsockopt(fd, SOL_SOCKET, a ? SO_SNDTIMEO : SO_RCVTIMEO, &time, sizeof time), result.error = errno;
    } else if (!strcmp(word, "lowat") && sscanf(rest, "%ld", &a) == 1) {
        result.value = set_option(SOL_SOCKET, SO_RCVLOWAT, a), result.error = errno;
    } else if (!strcmp(word, "nodelay") && sscanf(rest, "%ld", &a) == 1) {
        result.value = set_option(IPPROTO_TCP, TCP_NODELAY, a), result.error = errno;
    } else if (!strcmp(word, "keepalive") && sscanf(rest, "%ld", &a) == 1) {
        result.value = set_option(SOL_SOCKET, SO_KEEPALIVE, a), result.error = errno;
    } else if (!strcmp(word, "fionread")) {
        int value = -1;
        result.value = ioctl(fd, FIONREAD, &value) < 0 ? -1 : value, result.error = errno;
    } else if (!strcmp(word, "error")) {
        int value = -1;
        socklen_t length = sizeof value;
        result.value = getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length) < 0 ? -1 : value, result.error = errno;
    } else if (!strcmp(word, "dupswap")) {
        int copy = dup(fd), old = fd;
        result.value = copy < 0 || close(old) < 0 || dup2(copy, old) < 0 || close(copy) < 0 ? -1 : 0;
        result.error = errno;
    } else if (!strcmp(word, "fork")) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        result.value = child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
    } else if (!strcmp(word, "settle") && sscanf(rest, "%ld %ld %ld", &a, &b, &c) == 3) {
        result = settle(a, b, c);
    } else if (!strcmp(word, "storm") && sscanf(rest, "%ld %ld %ld", &a, &b, &c) == 3) {
        result = storm(a, b, c);
    } else {
        errno = EINVAL;
        die(line);
    }
    return result;
}

/* Executes a call, with signals if it asks for them. */
static struct result run(char *line) {
    long every, restart;
    int used = 0;
    timer_t timer;
    int timed = sscanf(line, "sig %ld %ld %n", &every, &restart, &used) == 2 && used > 0;
    if (timed) {
        line += used;
        struct sigaction action = {.sa_handler = nothing, .sa_flags = restart ? SA_RESTART : 0};
        sigaction(SIGUSR1, &action, NULL);
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
        event.sigev_notify_thread_id = gettid();
        struct itimerspec often = {{0, every * 1000000}, {0, every * 1000000}};
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 || timer_settime(timer, 0, &often, NULL) < 0)
            die("timer");
    }
    int64_t begin = now_us();
    struct result result = execute(line);
    result.micros = now_us() - begin;
    if (timed)
        timer_delete(timer);
    return result;
}

static char pending[256];
static struct result later;
static int busy, ready;
static pthread_t second;

static void *run_later(void *unused) {
    (void)unused;
    later = run(pending);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void answer(struct result result) {
    printf("%ld %d %ld %ld\n", result.value, result.value < 0 ? result.error : 0, result.good, result.micros);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 16) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        die("listen");
    printf("%d\n", ntohs(address.sin_port));
    while (fgets(line, sizeof line, stdin)) {
        unsigned long port, out, in;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "open connect %lu %lu %lu", &port, &out, &in) == 3) {
            address.sin_port = htons(port);
            fd = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
                die("connect");
            sent = received = 0, salt_out = out, salt_in = in;
            answer((struct result){0, 0, 0, 0});
        } else if (sscanf(line, "open accept %lu %lu", &out, &in) == 2) {
            if ((fd = accept(listener, NULL, NULL)) < 0)
                die("accept");
            sent = received = 0, salt_out = out, salt_in = in;
            answer((struct result){0, 0, 0, 0});
        } else if (!strncmp(line, "do ", 3)) {
            answer(run(line + 3));
        } else if (!strncmp(line, "go ", 3)) {
            strcpy(pending, line + 3);
            busy = 1, ready = 0;
            if (pthread_create(&second, NULL, run_later, NULL))
                die("pthread_create");
            answer((struct result){0, 0, 0, 0});
        } else if (!strcmp(line, "join") && busy) {
            pthread_join(second, NULL);
            busy = 0;
            answer(later);
        } else if (!strcmp(line, "ask") && busy) {
            answer((struct result){__atomic_load_n(&ready, __ATOMIC_SEQ_CST), 0, 0, 0});
        } else {
            errno = EINVAL;
            die(line);
        }
    }
    return 0;
}
