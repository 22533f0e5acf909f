/* A program with an allocator of its own, whose lock is no recursive one: handlers come while it is held and use sockets, and
 * it is held during a fork. What a library allocates, it must not allocate there. */
#include "behaviour.h"

static unsigned char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;
static int locked, entered_twice;
static pthread_t holder;
static __thread int armed;

static void lock(void) {
    int expected = 0;
    while (!__atomic_compare_exchange_n(&locked, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (pthread_equal(__atomic_load_n(&holder, __ATOMIC_RELAXED), pthread_self())) {
            /* It would wait for itself. */
            __atomic_store_n(&entered_twice, 1, __ATOMIC_RELAXED);
            abort();
        }
        expected = 0;
        sched_yield();
    }
    __atomic_store_n(&holder, pthread_self(), __ATOMIC_RELAXED);
}

static void unlock(void) {
    __atomic_store_n(&holder, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static void *take(size_t size, size_t align) {
    lock();
    if (armed) {
        armed = 0;
        raise(SIGUSR1);
    }
    size_t at = (used + 16 + align - 1) / align * align;
    if (at + size > sizeof arena)
        abort();
    used = at + size;
    memcpy(arena + at - 8, &size, sizeof size);
    unlock();
    return arena + at;
}

void *malloc(size_t size) { return take(size, 16); }
void *calloc(size_t count, size_t size) { return take(count * size, 16); }
void *memalign(size_t align, size_t size) { return take(size, align < 16 ? 16 : align); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
int posix_memalign(void **into, size_t align, size_t size) { return *into = memalign(align, size), 0; }
void free(void *block) {
    if (block) {
        lock();
        unlock();
    }
}
void *realloc(void *block, size_t size) {
    size_t before = 0;
    void *new = take(size, 16);
    if (block)
        memcpy(&before, (char *)block - 8, sizeof before), memcpy(new, block, before < size ? before : size);
    return new;
}

static int own, port, listener, set, step, failures;

static void expect(int good) { failures += !good; }

/* A wait, until another handler does not interrupt it. */
#define AGAIN(wait) \
    ({ \
        int outcome; \
        do \
            outcome = (wait); \
        while (outcome < 0 && errno == EINTR); \
        outcome; \
    })

/* Each of these is allowed in a handler. */
static void handler(int number UNUSED) {
    char byte = 'h';
    struct pollfd entry = {own, POLLIN, 0};
    struct timeval none = {0, 0};
    struct sockaddr_storage address;
    socklen_t length;
    fd_set readable;
    int fd, other;
    switch (step) {
    case 0:
        expect(write(own, &byte, 1) == 1);
        expect(AGAIN(poll(&entry, 1, 5000)) == 1);
        expect(read(own, &byte, 1) == 1 && byte == 'h');
        break;
    case 1:
        expect(poll(&entry, 1, 0) == 0);
        expect(recv(own, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        FD_ZERO(&readable);
        FD_SET(own, &readable);
        expect(select(own + 1, &readable, NULL, NULL, &none) == 0);
        break;
    case 2:
        expect((fd = dup(own)) >= 0);
        expect(dup2(own, fd) == fd);
        expect(send(fd, &byte, 1, 0) == 1);
        expect(recv(fd, &byte, 1, 0) == 1);
        expect(close(fd) == 0);
        break;
    case 3:
        length = loopback(&address, AF_INET, port);
        expect((fd = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        expect(connect(fd, (struct sockaddr *)&address, length) == 0);
        expect((other = accept(listener, NULL, NULL)) >= 0);
        for (int i = 0; i < 20; i++) {
            expect(send(fd, &byte, 1, 0) == 1 && recv(other, &byte, 1, 0) == 1);
            expect(send(other, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1);
        }
        expect(shutdown(fd, SHUT_WR) == 0 && recv(other, &byte, 1, 0) == 0);
        expect(close(fd) == 0 && close(other) == 0);
        break;
    case 4: {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = own};
        expect(epoll_ctl(set, EPOLL_CTL_ADD, own, &event) == 0);
        expect(epoll_wait(set, &event, 1, 0) == 0);
        expect(write(own, &byte, 1) == 1);
        expect(AGAIN(epoll_wait(set, &event, 1, 5000)) == 1);
        expect(read(own, &byte, 1) == 1);
        expect(epoll_ctl(set, EPOLL_CTL_DEL, own, NULL) == 0);
        break;
    }
    }
}

static void child_unlock(void) { unlock(); }

static void server(int fd) {
    char byte;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    own = fd;
    listener = listen_somewhere(AF_INET, &port);
    set = epoll_create1(0);
    sigaction(SIGUSR1, &action, NULL);
    for (int promoted = 0; promoted < 2; promoted++) {
        for (step = 0; step < 5; step++) {
            armed = 1;
            free(malloc(10));
            note("in a handler, %d: %d failures", step, failures);
        }
        if (!promoted) {
            meet();
            warm(fd);
        }
    }
    /* The lock is taken before the handlers of libraries that were there earlier. */
    pthread_atfork(lock, unlock, child_unlock);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(10));
            _exit(0);
        }
        note_end("child", child);
    }
    DO(send(fd, "e", 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    /* What comes before warm(). */
    for (int i = 0; i < 3; i++)
        if (recv(fd, &byte, 1, 0) != 1 || send(fd, &byte, 1, 0) != 1)
            die("echo");
    meet();
    warm(fd);
    for (;;) {
        if (recv(fd, &byte, 1, 0) != 1 || send(fd, &byte, 1, 0) != 1)
            die("echo");
        if (byte == 'e')
            break;
    }
    DO(close(fd));
}
