/* Parent and child read and write one connection by turns; what had come before the fork is there for both, once. */
#include "behaviour.h"

enum { TURNS = 40, PIECE = 997, AHEAD = 30000 };

static int takes(int fd, size_t position) {
    unsigned char bytes[PIECE];
    return recv(fd, bytes, PIECE, MSG_WAITALL) == PIECE && right(bytes, position, PIECE) == PIECE;
}

static void server(int fd) {
    int to_child[2], to_parent[2], wrong = 0;
    char byte = 't';
    warm(fd);
    meet();
    await_bytes(fd, AHEAD);
    if (pipe(to_child) < 0 || pipe(to_parent) < 0)
        die("pipe");
    pid_t child = fork();
    int in = child == 0 ? to_child[0] : to_parent[0], out = child == 0 ? to_parent[1] : to_child[1];
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn % 2 == (child == 0)) {
            wrong += !takes(fd, (size_t)turn * PIECE);
            send_pattern(fd, (size_t)turn * PIECE, PIECE);
            if (write(out, &byte, 1) != 1)
                die("turn");
        } else if (read(in, &byte, 1) != 1)
            die("turn");
    }
    if (child == 0)
        _exit(wrong);
    note("%d wrong", wrong);
    note_end("the child", child);
    close(to_child[0]), close(to_child[1]), close(to_parent[0]), close(to_parent[1]);
    receive_pattern(fd, TURNS * PIECE, 50000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    send_pattern(fd, 0, AHEAD);
    meet();
    send_pattern(fd, AHEAD, TURNS * PIECE - AHEAD);
    receive_pattern(fd, 0, TURNS * PIECE);
    send_pattern(fd, TURNS * PIECE, 50000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
