/* A child has looked at what its parent had not read, and reads it after the parent has made another child. */
#include "behaviour.h"

enum { PIECE = 3000 };

static void pass_on(int fd) {
    if (write(fd, "x", 1) != 1)
        die("write");
}

static void wait_for(int fd) {
    char byte;
    if (read(fd, &byte, 1) != 1)
        die("read");
}

static void server(int fd) {
    int looked[2], go[2];
    if (pipe(looked) < 0 || pipe(go) < 0)
        die("pipe");
    warm(fd);
    for (int round = 0; round < 4; round++) {
        meet();
        await_bytes(fd, PIECE);
        pid_t first = fork();
        if (first == 0) {
            int waiting = 0;
            ioctl(fd, FIONREAD, &waiting);
            pass_on(looked[1]);
            wait_for(go[0]);
            size_t before = me->length;
            receive_pattern(fd, (size_t)round * PIECE, PIECE);
            _exit(waiting == PIECE && strstr(me->text + before, "all right") ? 0 : 1);
        }
        wait_for(looked[0]);
        pid_t second = fork();
        if (second == 0)
            _exit(0);
        note_end("the second child", second);
        pass_on(go[1]);
        note_end("the first child", first);
        send_pattern(fd, 0, 1000);
    }
    receive_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    for (int round = 0; round < 4; round++) {
        send_pattern(fd, (size_t)round * PIECE, PIECE);
        meet();
        receive_pattern(fd, 0, 1000);
    }
    send_pattern(fd, 0, 100000);
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
