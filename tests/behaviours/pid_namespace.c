/* A child in a pid namespace of its own, which sees no process of its parent's, uses a connection that the parent holds, too;
 * then the parent goes on with it while the child lives. Where such a namespace may not be made, the child is an ordinary one. */
#include "behaviour.h"

enum { ROUNDS = 60 };

static void answer(int fd) {
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char bytes[64];
        if (recv(fd, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes || send(fd, bytes, sizeof bytes, 0) != sizeof bytes)
            die("answer");
    }
}

static pid_t make_child(void) {
    pid_t child = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    return child < 0 ? fork() : child;
}

static void server(int fd) {
    int done[2], go[2];
    char byte = 'x';
    if (pipe(done) < 0 || pipe(go) < 0)
        die("pipe");
    pid_t child = make_child();
    if (child == 0) {
        answer(fd);
        /* The parent's turn; this one lives until that is over. */
        if (write(done[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(1);
        _exit(7);
    }
    if (read(done[0], &byte, 1) != 1)
        die("read");
    answer(fd);
    if (write(go[1], &byte, 1) != 1)
        die("write");
    note_end("the child", child);
    answer(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    unsigned char bytes[64];
    for (int i = 0; i < 3 * ROUNDS; i++) {
        fill(bytes, i, sizeof bytes);
        if (send(fd, bytes, sizeof bytes, 0) != sizeof bytes || recv(fd, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
            die("ask");
        if (right(bytes, i, sizeof bytes) != sizeof bytes)
            note("wrong answer %d", i);
    }
    note("asked");
    DO(close(fd));
}
