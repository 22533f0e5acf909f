/* Children that were made past libc, with memory of their own or with that of their parent, end: its connection goes on. */
#include "behaviour.h"

enum { CHILDREN = 6 };

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

static void server(int fd) {
    warm(fd);
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
