/* What the behaviour programs share.
 *
 * A program defines server() and client(), each given its end of one TCP connection, and notes what it sees. Run as
 * "alone", both ends are threads of one process; as "pair", the client is a process of its own, made by executing the
 * program again. The transcript (all of the server's notes, then the client's) is the same in every run, on whatever path
 * the bytes went. So it is in hostile surroundings, too (../environments): the helpers here are stirred up by them.
 *
 * Before the #include: FAMILY (AF_INET6 to listen on ::1), MAPPED (an IPv6 listener, an IPv4 client), OWN_CONNECT (the
 * client is given the port instead of a connection), OWN_ROLES (the program defines behaviour() and role() instead). */
#ifndef BEHAVIOUR_H
#define BEHAVIOUR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../environments/environment.h"

#ifndef FAMILY
#define FAMILY AF_INET
#endif

#define UNUSED __attribute__((unused))
#define MAY static UNUSED

/* How long a program waits for what must happen: much longer than it takes on a busy machine, and shorter than the test
 * waits for the program. */
enum { PATIENCE_MS = 240000 };

/* One end: its transcript and its way to meet the other. */
struct side {
    const char *name;
    char *text;
    size_t length, room;
    int in, out;
};

static struct side server_side = {.name = "server"}, client_side = {.name = "client"};
static __thread struct side *me;
static const char *program;

MAY void die(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", program, what, strerror(errno));
    exit(3);
}

/* Adds a line to this end's transcript. */
__attribute__((format(printf, 1, 2))) MAY void note(const char *format, ...) {
    char line[512];
    int error = errno;
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    if (me->length + length > me->room) {
        me->room = (me->length + length) * 2;
        me->text = realloc(me->text, me->room);
    }
    memcpy(me->text + me->length, line, length);
    me->length += length;
    errno = error;
}

MAY const char *error_name(int error) { return error ? strerrorname_np(error) : "0"; }

MAY long outcome(const char *what, long result) {
    if (result < 0)
        note("%s: %s", what, error_name(errno));
    else
        note("%s: %ld", what, result);
    return result;
}

/* Calls, and notes the call with its result or its error. */
#define DO(call)                                                                                                       \
    ({                                                                                                                 \
        int is_stormy_ = storm_on_for(#call);                                                                          \
        errno = 0;                                                                                                     \
        long result_ = (long)(call);                                                                                   \
        if (is_stormy_)                                                                                                \
            storm_off();                                                                                               \
        outcome(#call, result_);                                                                                       \
    })

/* Both ends have come here. */
MAY void meet(void) {
    char byte = 'm';
    if (write(me->out, &byte, 1) != 1)
        die("meet, write");
    ssize_t got;
    do
        got = read(me->in, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        die("meet: the other end is gone");
}

MAY int64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000ll + time.tv_nsec / 1000;
}

MAY void pause_ms(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000l};
    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        ;
}

/* The state of a process or a thread as the kernel tells it; 0 if it is gone. */
MAY char state_of(pid_t id) {
    char path[40], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end ? name_end[2] : 0;
}

/* Waits until a process is stopped, or gone. */
MAY void await_stop(pid_t process) {
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; now_us() < end; pause_ms(1)) {
        char state = state_of(process);
        if (!state || strchr("TtZX", state))
            return;
    }
}

/* Waits until a thread that tells its number sleeps in what it does next, for some time. */
MAY void await_asleep(pid_t *thread) {
    int looks = 0;
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; looks < 10 && now_us() < end; pause_ms(2)) {
        pid_t id = __atomic_load_n(thread, __ATOMIC_SEQ_CST);
        looks = id && state_of(id) == 'S' ? looks + 1 : 0;
    }
}

/* The byte at a position of a stream. */
MAY unsigned char byte_at(size_t position) { return (unsigned char)((position * 2654435761u >> 13) ^ position); }

MAY void fill(void *bytes, size_t position, size_t length) {
    unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        at[i] = byte_at(position + i);
}

/* How many bytes are right, from the first. */
MAY size_t right(const void *bytes, size_t position, size_t length) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        if (at[i] != byte_at(position + i))
            return i;
    return length;
}

MAY uint32_t checksum(const void *bytes, size_t length) {
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return sum;
}

/* Space for a piece of a stream. Thread-local storage would be part of the threads' stacks, which may be small. */
enum { PATTERN_PIECE = 65536 };

MAY unsigned char *take_piece(void) {
    unsigned char *piece = malloc(PATTERN_PIECE);
    if (!piece)
        die("malloc");
    return piece;
}

/* Sends a piece of the pattern, whole. */
MAY void send_pattern(int fd, size_t position, size_t length) {
    unsigned char *piece = take_piece();
    storm_on();
    while (length > 0) {
        size_t want = length < PATTERN_PIECE ? length : PATTERN_PIECE;
        fill(piece, position, want);
        for (size_t done = 0; done < want;) {
            ssize_t sent = send(fd, piece + done, want - done, MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR)
                continue;
            if (sent < 0) {
                note("sending at %zu: %s", position + done, error_name(errno));
                goto end;
            }
            done += sent;
        }
        position += want, length -= want;
    }
end:
    storm_off();
    free(piece);
}

/* Receives a piece of the pattern, whole, and notes whether it was right. */
MAY void receive_pattern(int fd, size_t position, size_t length) {
    unsigned char *piece = take_piece();
    size_t done = 0;
    storm_on();
    while (done < length) {
        size_t want = length - done < PATTERN_PIECE ? length - done : PATTERN_PIECE;
        jump_out(fd);
        ssize_t got = recv(fd, piece, want, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            note("received %zu of %zu, then %s", done, length, got == 0 ? "the end" : error_name(errno));
            goto end;
        }
        size_t good = right(piece, position + done, got);
        if (good != (size_t)got) {
            note("wrong byte at %zu", position + done + good);
            goto end;
        }
        done += got;
    }
    note("received %zu bytes, all right", length);
end:
    storm_off();
    free(piece);
}

/* Waits until so many bytes can be read. */
MAY void await_bytes(int fd, int bytes) {
    int there = 0;
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; now_us() < end; pause_ms(1)) {
        if (ioctl(fd, FIONREAD, &there) < 0 || there >= bytes)
            return;
    }
    note("only %d of %d bytes came", there, bytes);
}

/* Waits until one of these events is there, and returns all that are. */
MAY int await_events(int fd, int events) {
    struct pollfd entry = {fd, (short)events, 0};
    int count;
    do
        count = poll(&entry, 1, PATIENCE_MS);
    while (count < 0 && errno == EINTR);
    if (count == 0)
        note("the events %x did not come", events);
    return entry.revents;
}

/* Waits until just these events are there. */
MAY int settle_events(int fd, int asked, int wanted) {
    struct pollfd entry = {fd, (short)asked, 0};
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; now_us() < end; pause_ms(1))
        if (poll(&entry, 1, 0) >= 0 && entry.revents == wanted)
            return wanted;
    return entry.revents;
}

MAY const char *events_text(int events) {
    static __thread char text[80];
    static const struct {
        int bit;
        const char *name;
    } names[] = {{POLLIN, "IN "}, {POLLPRI, "PRI "}, {POLLOUT, "OUT "}, {POLLERR, "ERR "}, {POLLHUP, "HUP "},
                 {POLLNVAL, "NVAL "}, {POLLRDHUP, "RDHUP "}};
    text[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (events & names[i].bit)
            strcat(text, names[i].name);
    return text[0] ? text : "none ";
}

/* Notes what a set reports first, with room for so many events. */
MAY void look_at(int set, int room, const char *when, int limit) {
    struct epoll_event events[4];
    int count = epoll_wait(set, events, room, limit);
    note("%s: %d %s", when, count, count > 0 ? events_text(events[0].events) : "");
}

/* What poll says of a descriptor now. */
MAY void note_events(int fd, int events) {
    struct pollfd entry = {fd, (short)events, 0};
    int count = poll(&entry, 1, 0);
    note("poll: %d, %s", count, events_text(entry.revents));
}

/* One direction of an exchange, however often it is interrupted. */
MAY void warm_once(int fd, unsigned char *bytes, size_t length, int sends) {
    for (size_t done = 0; done < length;) {
        ssize_t count = sends ? send(fd, bytes + done, length - done, MSG_NOSIGNAL)
                              : recv(fd, bytes + done, length - done, MSG_WAITALL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            die(sends ? "warm, send" : "warm, receive");
        done += count;
    }
}

/* Enough exchanges that a connection can have moved. */
MAY void warm(int fd) {
    unsigned char bytes[64];
    storm_on();
    for (size_t i = 0; i < 40; i++) {
        for (int turn = 0; turn < 2; turn++) {
            int sends = (me == &client_side) == (turn == 0);
            fill(bytes, i * 64, sizeof bytes);
            if (sends) {
                warm_once(fd, bytes, sizeof bytes, sends);
                continue;
            }
            if (i % 8 == 5)
                jump_out(fd);
            memset(bytes, 0, sizeof bytes);
            warm_once(fd, bytes, sizeof bytes, sends);
            if (right(bytes, i * 64, sizeof bytes) != sizeof bytes)
                note("wrong byte in exchange %zu", i);
        }
    }
    storm_off();
}

MAY void set_int(int fd, int level, int option, int value) {
    if (setsockopt(fd, level, option, &value, sizeof value) < 0)
        die("setsockopt");
}

MAY int get_int(int fd, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, level, option, &value, &length) < 0 ? -errno : value;
}

MAY void set_nonblocking(int fd, int on) {
    int flags = fcntl(fd, F_GETFL);
    if (fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
        die("F_SETFL");
}

static int handled;
MAY void count_signal(int number UNUSED) { __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST); }

MAY void on_signal(int number, int flags) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
    if (sigaction(number, &action, NULL) < 0)
        die("sigaction");
}

MAY socklen_t loopback(struct sockaddr_storage *into, int family, int port) {
    memset(into, 0, sizeof *into);
    if (family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)into;
        v4->sin_family = AF_INET, v4->sin_port = htons(port), v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)into;
    v6->sin6_family = AF_INET6, v6->sin6_port = htons(port);
#ifdef MAPPED
    v6->sin6_addr = in6addr_any;
#else
    v6->sin6_addr = in6addr_loopback;
#endif
    return sizeof *v6;
}

/* A listening socket on a free port. */
MAY int listen_somewhere(int family, int *port) {
    struct sockaddr_storage address;
    socklen_t length = loopback(&address, family, 0);
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 128) < 0)
        die("listen");
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        die("getsockname");
    *port = ntohs(family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                    : ((struct sockaddr_in6 *)&address)->sin6_port);
    return fd;
}

MAY int dial(int family, int port) {
    struct sockaddr_storage address;
#ifdef MAPPED
    family = AF_INET;
#endif
    socklen_t length = loopback(&address, family, port);
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0)
        die("connect");
    return fd;
}

MAY int accept_one(int listener) {
    int fd;
    storm_on();
    do
        fd = accept(listener, NULL, NULL);
    while (fd < 0 && errno == EINTR);
    storm_off();
    if (fd < 0)
        die("accept");
    return fd;
}

/* Receives a piece of the pattern, of which only what is wrong leaves a note: it ends the process. */
MAY void expect_pattern(int fd, size_t from, size_t count, int failure) {
    size_t before = me->length;
    receive_pattern(fd, from, count);
    if (!strstr(me->text + before, "all right"))
        _exit(failure);
    me->length = before;
}

/* Executes this program again. Returns in the old process only. */
MAY pid_t start_role(const char *name, int port) {
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        execl("/proc/self/exe", program, name, text, (char *)NULL);
        _exit(127);
    }
    return child;
}

MAY void note_end(const char *who, pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    if (WIFEXITED(status))
        note("%s ended with %d", who, WEXITSTATUS(status));
    else
        note("%s was ended by signal %d", who, WTERMSIG(status));
}

static void print_side(const struct side *side) {
    FILE *out = environment_word("closed") ? fdopen(dup(CLOSED_OUT), "w") : stdout;
    if (!out)
        die("standard output");
    fprintf(out, "[%s]\n", side->name);
    fwrite(side->text, 1, side->length, out);
    fflush(out);
}

/* Descriptors of the meeting place, out of the way of the lowest free ones. */
enum { SERVER_IN = 100, SERVER_OUT, CLIENT_IN, CLIENT_OUT, WORDS_IN, WORDS_OUT };

MAY void place_pipe(int in, int out) {
    int ends[2];
    if (pipe(ends) < 0 || dup2(ends[0], in) < 0 || dup2(ends[1], out) < 0)
        die("pipe");
    close(ends[0]), close(ends[1]);
}

/* Answers one byte with itself, as an event loop does, until so many clients have come and gone; returns how many have
 * not. The listener is in the set, and `events` is what connections are registered for. */
MAY int echo_by_set(int set, int listener, int clients, uint32_t events) {
    struct epoll_event event;
    while (clients > 0 && epoll_wait(set, &event, 1, PATIENCE_MS) == 1) {
        char byte;
        if (event.data.fd == listener) {
            event = (struct epoll_event){.events = events, .data.fd = accept_one(listener)};
            epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event);
        } else if (recv(event.data.fd, &byte, 1, 0) == 1) {
            send(event.data.fd, &byte, 1, 0);
        } else {
            close(event.data.fd);
            clients--;
        }
    }
    return clients;
}

/* The other side of it: asks so many times. A role that notes something has failed. */
MAY void ask_rounds(int port, int rounds) {
    int fd = dial(AF_INET, port), answers = 0;
    for (int i = 0; i < rounds; i++) {
        char byte = i;
        if (send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1 && byte == i)
            answers++;
    }
    if (answers != rounds)
        note("%d answers", answers);
    close(fd);
}

#ifdef OWN_ROLES
static void behaviour(void);
static void role(const char *name, int port);

int main(int argc, char **argv) {
    program = argv[0];
    me = &server_side;
    environment_begin(argc == 3);
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3) {
        me = &client_side;
        role(argv[1], atoi(argv[2]));
        if (me->length)
            fprintf(stderr, "%.*s", (int)me->length, me->text);
        return me->length ? 1 : 0;
    }
    behaviour();
    print_side(me);
    return 0;
}
#else
static void server(int fd);
static void client(int fd_or_port);

static void run_client(int port) {
    me = &client_side;
#ifdef OWN_CONNECT
    client(port);
#else
    client(dial(FAMILY, port));
#endif
}

static void *client_thread(void *port) {
    run_client((int)(intptr_t)port);
    return NULL;
}

int main(int argc, char **argv) {
    int port;
    program = argv[0];
    client_side.in = CLIENT_IN, client_side.out = CLIENT_OUT;
    server_side.in = SERVER_IN, server_side.out = SERVER_OUT;
    environment_begin(argc == 3);
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3) {
        close(SERVER_IN), close(SERVER_OUT), close(WORDS_IN);
        run_client(atoi(argv[2]));
        for (size_t done = 0; done < me->length;) {
            ssize_t wrote = write(WORDS_OUT, me->text + done, me->length - done);
            if (wrote <= 0)
                die("writing the transcript");
            done += wrote;
        }
        return 0;
    }
    if (argc != 2 || (strcmp(argv[1], "alone") && strcmp(argv[1], "pair"))) {
        fprintf(stderr, "%s alone|pair\n", argv[0]);
        return 2;
    }
    place_pipe(SERVER_IN, CLIENT_OUT);
    place_pipe(CLIENT_IN, SERVER_OUT);
    place_pipe(WORDS_IN, WORDS_OUT);
    me = &server_side;
    if (!strcmp(argv[1], "alone")) {
        pthread_t thread;
        int listener = listen_somewhere(FAMILY, &port);
        if (pthread_create(&thread, NULL, client_thread, (void *)(intptr_t)port))
            die("pthread_create");
        /* The client's end has the number after the listener's or the one after that. */
        server(accept_one(listener));
        pthread_join(thread, NULL);
    } else {
        int listener = listen_somewhere(FAMILY, &port);
        fcntl(listener, F_SETFD, FD_CLOEXEC);
        pid_t child = start_role("client", port);
        close(CLIENT_IN), close(CLIENT_OUT), close(WORDS_OUT);
        server(accept_one(listener));
        struct side *words = &client_side;
        for (;;) {
            char piece[4096];
            ssize_t got = read(WORDS_IN, piece, sizeof piece);
            if (got <= 0)
                break;
            words->text = realloc(words->text, words->length + got);
            memcpy(words->text + words->length, piece, got);
            words->length += got;
        }
        note_end("the client", child);
    }
    print_side(&server_side);
    print_side(&client_side);
    return 0;
}
#endif
#endif
