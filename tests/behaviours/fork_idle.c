/* A child that inherits a connection and never touches it changes nothing, also when it lives long. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    warm(fd);
    meet();
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    note_end("a child", child);
    receive_pattern(fd, 0, 300000);
    pid_t sleeper = fork();
    if (sleeper == 0) {
        pause_ms(100);
        _exit(8);
    }
    receive_pattern(fd, 300000, 300000);
    send_pattern(fd, 5, 300000);
    note_end("a child", sleeper);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    meet();
    send_pattern(fd, 0, 600000);
    receive_pattern(fd, 5, 300000);
    DO(close(fd));
}
