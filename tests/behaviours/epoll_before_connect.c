/* Sockets that are in a set, or registered in some other way, before they are connected: whatever reports them then goes on
 * to do so, however far the connection has come. */
#define OWN_ROLES
#include "behaviour.h"
#include <linux/io_uring.h>

enum { ROUNDS = 60, FOUND_SET = 90, FOUND_SOCKET = 91, LIMIT = PATIENCE_MS };

static int echo_port;

/* Answers one byte with itself, for one connection after the other, until one says "q". */
static void serve(int listener) {
    for (char byte = 0; byte != 'q';) {
        int fd = accept_one(listener);
        while (recv(fd, &byte, 1, 0) == 1 && byte != 'q')
            send(fd, &byte, 1, MSG_NOSIGNAL);
        close(fd);
    }
}

static int reach(int fd, int port) {
    struct sockaddr_storage address;
    socklen_t length = loopback(&address, AF_INET, port);
    return connect(fd, (struct sockaddr *)&address, length);
}

static int add(int set, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = 7};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

/* Waits on the set for each answer. */
static int rounds_by_set(int set, int fd) {
    struct epoll_event event;
    int answers = 0;
    for (char byte = 'a', got; answers < ROUNDS; answers++, byte = 'a' + answers % 8) {
        if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            break;
        do {
            event.events = 0;
            if (epoll_wait(set, &event, 1, LIMIT) != 1)
                return answers;
        } while (!(event.events & EPOLLIN));
        if (event.data.u32 != 7 || recv(fd, &got, 1, MSG_DONTWAIT) != 1 || got != byte)
            break;
    }
    return answers;
}

static void finish(const char *what, int set, int fd) {
    note("%s: %d answers", what, rounds_by_set(set, fd));
    close(fd);
    close(set);
}

static void blocking(uint32_t events, const char *what) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, events);
    if (reach(fd, echo_port) < 0)
        note("%s: %s", what, error_name(errno));
    finish(what, set, fd);
}

static void in_progress(uint32_t events, const char *what) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct epoll_event event;
    add(set, fd, events);
    reach(fd, echo_port);
    while (get_int(fd, SOL_SOCKET, SO_ERROR) == 0 && !(await_events(fd, POLLOUT) & POLLOUT))
        ;
    epoll_wait(set, &event, 1, 0);
    finish(what, set, fd);
}

static void between(void) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    reach(fd, echo_port);
    add(set, fd, EPOLLIN | EPOLLET);
    await_events(fd, POLLOUT);
    finish("added on the way", set, fd);
}

static void copies(void) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0), copy = dup(fd);
    add(set, copy, EPOLLIN);
    reach(fd, echo_port);
    close(fd);
    finish("added as a copy", set, copy);

    set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    copy = dup(fd);
    close(fd);
    reach(copy, echo_port);
    finish("only a copy is left", set, copy);
}

static void two_sets(void) {
    int other = epoll_create1(0), set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(other, fd, EPOLLIN);
    add(set, fd, EPOLLIN);
    reach(fd, echo_port);
    note("two sets: %d answers", rounds_by_set(other, fd));
    finish("two sets, the other", set, fd);
    close(other);
}

static void nested(void) {
    int outer = epoll_create1(0), inner = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0), answers = 0;
    struct epoll_event event;
    add(inner, fd, EPOLLIN);
    add(outer, inner, EPOLLIN);
    reach(fd, echo_port);
    for (char byte = 'a'; answers < ROUNDS; answers++)
        if (send(fd, &byte, 1, 0) != 1 || epoll_wait(outer, &event, 1, LIMIT) != 1 || recv(fd, &byte, 1, 0) != 1)
            break;
    note("a set in a set: %d answers", answers);
    close(inner), close(outer), close(fd);
}

static void forked(void) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    pid_t child = fork();
    if (child == 0) {
        reach(fd, echo_port);
        _exit(rounds_by_set(set, fd) == ROUNDS ? 0 : 1);
    }
    note_end("a child with the parent's set", child);
    close(set), close(fd);

    fd = socket(AF_INET, SOCK_STREAM, 0);
    child = fork();
    if (child == 0) {
        set = epoll_create1(0);
        add(set, fd, EPOLLIN | EPOLLET);
        reach(fd, echo_port);
        _exit(rounds_by_set(set, fd) == ROUNDS ? 0 : 1);
    }
    close(fd);
    note_end("a child with the parent's socket", child);
}

/* Sends a descriptor from this process to itself. */
static int passed(int fd) {
    int ends[2];
    char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || sendmsg(ends[0], &message, 0) != 1)
        die("passing");
    message.msg_controllen = sizeof space;
    if (recvmsg(ends[1], &message, 0) != 1)
        die("being passed");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    close(ends[0]), close(ends[1]);
    return fd;
}

static void passing(void) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    int other = passed(fd);
    close(fd);
    reach(other, echo_port);
    finish("a socket that was passed", set, other);

    set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    int other_set = passed(set);
    close(set);
    reach(fd, echo_port);
    finish("a set that was passed", other_set, fd);

    set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    other_set = passed(set);
    close(set);
    add(other_set, fd, EPOLLIN);
    reach(fd, echo_port);
    finish("added to a set that was passed", other_set, fd);

    set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    reach(fd, echo_port);
    rounds_by_set(set, fd);
    other_set = passed(set);
    close(set);
    finish("a set that is passed later", other_set, fd);
}

static void executed(void) {
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    dup2(set, FOUND_SET), dup2(fd, FOUND_SOCKET);
    note_end("a program with both", start_role("inherit", echo_port));
    close(FOUND_SET), close(FOUND_SOCKET), close(set), close(fd);
}

static void raw(void) {
    int set = syscall(SYS_epoll_create1, 0), fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &event);
    reach(fd, echo_port);
    finish("by number", set, fd);
}

static void refused(void) {
    int port, unused = listen_somewhere(AF_INET, &port);
    close(unused);
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    int result = reach(fd, port);
    note("refused: %d %s", result, error_name(errno));
    reach(fd, echo_port);
    finish("a second connect", set, fd);
}

static void dissolved(void) {
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    int set = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
    add(set, fd, EPOLLIN);
    reach(fd, echo_port);
    note("before it is dissolved: %d answers", rounds_by_set(set, fd));
    note("AF_UNSPEC: %d", connect(fd, &none, sizeof none));
    reach(fd, echo_port);
    finish("connected anew", set, fd);
}

static void by_signal(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), answers = 0;
    struct timespec limit = {LIMIT / 1000, 0};
    sigset_t wanted;
    sigemptyset(&wanted), sigaddset(&wanted, SIGIO);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    fcntl(fd, F_SETOWN, getpid());
    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    reach(fd, echo_port);
    await_events(fd, POLLOUT);
    for (char byte = 'a'; answers < ROUNDS; answers++) {
        ssize_t got = -1;
        if (send(fd, &byte, 1, 0) != 1)
            break;
        while ((got = recv(fd, &byte, 1, 0)) < 0 && sigtimedwait(&wanted, NULL, &limit) == SIGIO)
            ;
        if (got != 1)
            break;
    }
    note("told by a signal: %d answers", answers);
    close(fd);
}

/* A ring of the kernel's that is asked to poll a socket, round after round. */
static void by_ring_of_kernel(void) {
    struct io_uring_params made = {0};
    int answers = 0, fd = socket(AF_INET, SOCK_STREAM, 0), ring = syscall(SYS_io_uring_setup, 4, &made);
    if (ring < 0) {
        note("no io_uring: %s", error_name(errno));
        close(fd);
        return;
    }
    size_t length = made.sq_off.array + made.sq_entries * 4;
    size_t other = made.cq_off.cqes + made.cq_entries * sizeof(struct io_uring_cqe);
    char *asked = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *told = mmap(NULL, other, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, made.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                                        IORING_OFF_SQES);
    if (asked == MAP_FAILED || told == MAP_FAILED || entries == MAP_FAILED)
        die("mmap");
    unsigned *tail = (unsigned *)(asked + made.sq_off.tail), *list = (unsigned *)(asked + made.sq_off.array);
    unsigned *head = (unsigned *)(told + made.cq_off.head), *end = (unsigned *)(told + made.cq_off.tail);
    reach(fd, echo_port);
    for (char byte = 'a'; answers < ROUNDS; answers++) {
        unsigned at = *tail & (made.sq_entries - 1);
        entries[at] = (struct io_uring_sqe){.opcode = IORING_OP_POLL_ADD, .fd = fd, .poll32_events = POLLIN};
        list[at] = at;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1 || send(fd, &byte, 1, 0) != 1)
            break;
        for (int64_t limit = now_us() + LIMIT * 1000ll; *head == __atomic_load_n(end, __ATOMIC_ACQUIRE); pause_ms(1))
            if (now_us() > limit)
                break;
        if (*head == __atomic_load_n(end, __ATOMIC_ACQUIRE) || recv(fd, &byte, 1, MSG_DONTWAIT) != 1)
            break;
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    }
    note("told by io_uring: %d answers", answers);
    close(ring), close(fd);
}

static void role(const char *name, int port) {
    if (!strcmp(name, "inherit")) {
        reach(FOUND_SOCKET, port);
        int answers = rounds_by_set(FOUND_SET, FOUND_SOCKET);
        if (answers != ROUNDS)
            note("%d answers", answers);
    } else {
        int listener = port;
        serve(listener);
    }
}

static void behaviour(void) {
    int listener = listen_somewhere(AF_INET, &echo_port);
    pid_t server = start_role("serve", listener);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    blocking(EPOLLIN, "level");
    blocking(EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, "edge");
    /* As Boost.Asio registers every socket when it is made. */
    blocking(EPOLLIN | EPOLLPRI | EPOLLERR | EPOLLHUP | EPOLLET, "reactor");
    in_progress(EPOLLIN, "level, in progress");
    in_progress(EPOLLIN | EPOLLRDHUP | EPOLLET, "edge, in progress");
    between();
    copies();
    two_sets();
    nested();
    forked();
    passing();
    executed();
    raw();
    refused();
    dissolved();
    by_signal();
    by_ring_of_kernel();
    int last = dial(AF_INET, echo_port);
    send(last, "q", 1, 0);
    note_end("the server", server);
    close(last);
}
