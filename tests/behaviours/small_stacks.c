/* Threads with the smallest stacks, and handlers on the smallest of theirs, make every call. */
#include "behaviour.h"

/* What the library may use of a stack below a call. Code that is built for debugging uses more. */
#ifdef BUILT_FOR_DEBUGGING
enum { DEPTH = 20 << 10, STACK = 32 << 10 };
#else
enum { DEPTH = 8 << 10, STACK = 16 << 10 };
#endif

static int port, listener, pair[2], set, file, pipe_ends[2], fresh[2];
static char bytes[70000];

static void exchange(const int *two, int count) {
    char byte = 'x';
    for (int i = 0; i < count; i++)
        for (int turn = 0; turn < 2; turn++)
            if (send(two[turn], &byte, 1, 0) != 1 || recv(two[!turn], &byte, 1, 0) != 1)
                die("exchange");
}

static void nothing(void) {}
static void connects(void) { fresh[0] = dial(AF_INET, port), fresh[1] = accept_one(listener); }
static void promotes(void) { exchange(fresh, 40); }
static void sends(void) {
    if (send(pair[0], bytes, 100, 0) != 100 || write(pair[0], bytes, 100) != 100)
        die("send");
}
static void receives(void) {
    recv(pair[1], bytes, 50, 0), recv(pair[1], bytes, 10, MSG_PEEK), recv(pair[1], bytes, 50, MSG_WAITALL);
    if (read(pair[1], bytes, 100) != 100)
        die("read");
    recv(pair[1], bytes, 10, MSG_DONTWAIT);
}
static void vectors(void) {
    struct iovec parts[3] = {{bytes, 10}, {bytes + 10, 20}, {bytes + 30, 30}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    if (writev(pair[0], parts, 3) != 60 || readv(pair[1], parts, 3) != 60)
        die("vectors");
    sendmsg(pair[0], &message, 0), recvmsg(pair[1], &message, 0);
}
static void throws_away(void) {
    send(pair[0], bytes, 3000, 0);
    recv(pair[1], NULL, 3000, MSG_TRUNC | MSG_WAITALL);
}
static void polls(void) {
    struct pollfd entries[2] = {{pair[1], POLLIN, 0}, {pair[0], POLLIN | POLLOUT, 0}};
    poll(entries, 1, 5), poll(entries, 2, 0), ppoll(entries, 1, &(struct timespec){0, 1000000}, NULL);
}
static void selects(void) {
    fd_set readable;
    struct timeval soon = {0, 5000};
    FD_ZERO(&readable);
    FD_SET(pair[1], &readable);
    select(pair[1] + 1, &readable, NULL, NULL, &soon);
}
static void selects_beyond(void) {
    fd_set readable;
    struct timeval soon = {0, 5000};
    FD_ZERO(&readable);
    FD_SET(pair[1], &readable);
    select(FD_SETSIZE, &readable, NULL, NULL, &soon);
}
static void waits_in_set(void) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = pair[1]};
    set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
    epoll_wait(set, &event, 1, 5);
    send(pair[0], bytes, 1, 0);
    epoll_wait(set, &event, 1, 5000);
    recv(pair[1], bytes, 1, 0);
    epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL);
    close(set);
}
static void copies(void) {
    int copy = dup(pair[0]);
    dup2(pair[0], copy);
    fcntl(copy, F_GETFL), close(fcntl(pair[0], F_DUPFD, 0)), close(copy);
}
static void asks(void) {
    int count, on = 1;
    socklen_t length = sizeof on;
    ioctl(pair[1], FIONREAD, &count);
    setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &on, &length);
}
static void sends_file(void) {
    off_t start = 0;
    sendfile(pair[0], file, &start, 5000);
    recv(pair[1], bytes, 5000, MSG_WAITALL);
}
static void splices(void) {
    send(pair[0], bytes, 100, 0);
    if (splice(pair[1], NULL, pipe_ends[1], NULL, 100, 0) > 0 && splice(pipe_ends[0], NULL, pair[0], NULL, 100, 0) > 0)
        recv(pair[1], bytes, 100, MSG_WAITALL);
}
static void forks(void) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
}
static void leaves(void) { send(fresh[0], bytes, 1, MSG_OOB); }
static void shuts(void) { shutdown(fresh[0], SHUT_WR); }
static void closes(void) { close(fresh[0]), close(fresh[1]); }
static void times_out(void) {
    struct timeval soon = {0, 5000};
    setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    recv(pair[1], bytes, 10, 0);
}
static void fills(void) {
    while (send(pair[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    while (recv(pair[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

static const struct {
    const char *name;
    void (*run)(void);
} steps[] = {{"nothing", nothing}, {"connects", connects}, {"promotes", promotes}, {"sends", sends},
             {"receives", receives}, {"vectors", vectors}, {"throws_away", throws_away}, {"polls", polls},
             {"selects", selects}, {"selects_beyond", selects_beyond}, {"waits_in_set", waits_in_set},
             {"copies", copies}, {"asks", asks}, {"sends_file", sends_file}, {"splices", splices}, {"forks", forks}, {"times_out", times_out},
             {"fills", fills}, {"leaves", leaves}, {"shuts", shuts}, {"closes", closes}};

/* On painted stacks, of which the paint shows how much was used. */
enum { WHOLE = 256 << 10, PAINT = 0xa5 };
static size_t used;
static __thread int depth_step;

static void *run_step(void *number) {
    steps[(intptr_t)number].run();
    return NULL;
}

static void *run_all(void *unused UNUSED) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        steps[i].run();
    return NULL;
}

static void on_stack(size_t size, void *(*run)(void *), intptr_t number) {
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned char *stack = mmap(NULL, WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    if (stack == MAP_FAILED)
        die("mmap");
    memset(stack, PAINT, WHOLE);
    if (size < WHOLE)
        mprotect(stack, WHOLE - size, PROT_NONE);
    if (pthread_attr_setstack(&attributes, stack + WHOLE - size, size) != 0 ||
        pthread_create(&thread, &attributes, run, (void *)number) != 0)
        die("thread");
    pthread_join(thread, NULL);
    size_t from = WHOLE - size;
    while (from < WHOLE && stack[from] == PAINT)
        from++;
    used = WHOLE - from;
    munmap(stack, WHOLE);
}

static void handler(int number UNUSED) { steps[depth_step].run(); }

/* The same in handlers, each on a stack of its own. */
static void *in_handlers(void *unused UNUSED) {
    static char room[STACK];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        depth_step = i;
        raise(SIGUSR1);
    }
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    return NULL;
}

static void server(int fd) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    size_t base = 0;
    listener = listen_somewhere(AF_INET, &port), file = memfd_create("file", 0);
    if (ftruncate(file, 5000) < 0 || pipe(pipe_ends) < 0)
        die("files");
    warm(fd);
    pair[0] = dial(AF_INET, port), pair[1] = accept_one(listener);
    exchange(pair, 40);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        on_stack(WHOLE, run_step, i);
        if (i == 0)
            base = used;
        if (getenv("SHOW_DEPTHS"))
            fprintf(stderr, "%s: %zu\n", steps[i].name, used - base);
        note("%s: little enough: %d", steps[i].name, used - base <= DEPTH);
    }
    on_stack(STACK, run_all, 0);
    note("on a small stack");
    sigaction(SIGUSR1, &action, NULL);
    on_stack(WHOLE, in_handlers, 0);
    note("in handlers");
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
