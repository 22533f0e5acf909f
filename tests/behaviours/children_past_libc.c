/* Children that were made past libc, with memory of their own or with that of their parent, end, whatever other threads were at
 * when they were made: the connection of their parent goes on. */
#include "behaviour.h"

enum { CHILDREN = 6, BRIEF = 200 };

static int stack[4096] __attribute__((aligned(64)));

/* With the parent's memory, on a stack of its own. */
static int ends(void *unused UNUSED) { _exit(0); }

static void make_child(int with_memory, int ending) {
    pid_t child;
    if (with_memory) {
        child = clone(ends, stack + 4096, CLONE_VM | SIGCHLD, NULL);
    } else {
        child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0 && ending)
            exit(0);
        if (child == 0)
            _exit(0);
    }
    note_end("a child", child);
}

static int over;

/* Uses the lists of descriptors all the time. */
static void *copies(void *fd) {
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
        close(dup(*(int *)fd));
    return NULL;
}

/* Children that end at once, while another thread is at work. */
static void make_many(int fd) {
    pthread_t thread;
    int ended = 0, status;
    if (pthread_create(&thread, NULL, copies, &fd) != 0)
        die("pthread_create");
    for (int i = 0; i < BRIEF; i++) {
        pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            _exit(0);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    note("%d of %d have ended", ended, BRIEF);
}

static void server(int fd) {
    warm(fd);
    make_many(fd);
    for (int i = 0; i < CHILDREN; i++) {
        send_pattern(fd, (size_t)i * 1000, 1000);
        make_child(i % 2, i % 4);
        receive_pattern(fd, (size_t)i * 1000, 1000);
    }
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    for (int i = 0; i < CHILDREN; i++) {
        receive_pattern(fd, (size_t)i * 1000, 1000);
        send_pattern(fd, (size_t)i * 1000, 1000);
    }
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
