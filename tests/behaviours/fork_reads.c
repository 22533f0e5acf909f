/* A child reads what its parent had not read of a connection, and answers, while the parent keeps its copy. */
#include "behaviour.h"

enum { ROUNDS = 4, MOST = 200000 };
static const size_t sizes[ROUNDS] = {1, 5000, 70000, MOST};

/* In a child: 0 if so many bytes come, all right. */
static int reads(int fd, size_t position, size_t length) {
    size_t before = me->length;
    receive_pattern(fd, position, length);
    return strstr(me->text + before, "all right") ? 0 : 1;
}

static void server(int fd) {
    warm(fd);
    size_t position = 0;
    for (int round = 0; round < ROUNDS; round++) {
        /* Some of it has come, all of it, or nothing. */
        meet();
        if (round > 0)
            await_bytes(fd, 1);
        pid_t child = fork();
        if (child == 0) {
            int wrong = reads(fd, position, sizes[round]);
            send_pattern(fd, position, 1000);
            _exit(wrong);
        }
        note_end("a child", child);
        position += sizes[round];
    }
    receive_pattern(fd, position, 100000);
    send_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    size_t position = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0 && sizes[round] < 100000)
            send_pattern(fd, position, sizes[round]);
        meet();
        if (round == 0 || sizes[round] >= 100000)
            send_pattern(fd, position, sizes[round]);
        receive_pattern(fd, position, 1000);
        position += sizes[round];
    }
    send_pattern(fd, position, 100000);
    receive_pattern(fd, 0, 100000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
