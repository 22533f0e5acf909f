/* A child goes on writing where its parent's bytes lie unread, and then the reader wants these over TCP: they come first all the same. */
#include "behaviour.h"

enum { FIRST = 100000, SECOND = 5000, THIRD = 5000, ALL = FIRST + SECOND + THIRD };

static void server(int fd) {
    static unsigned char bytes[ALL];
    warm(fd);
    meet();
    FILE *stream = fdopen(dup(fd), "r");
    size_t got = fread(bytes, 1, ALL, stream);
    note("%zu, %zu right", got, right(bytes, 0, got));
    fclose(stream);
    DO(send(fd, "answer", 6, 0));
    meet();
    DO(close(fd));
}

static void client(int fd) {
    char answer[6];
    warm(fd);
    send_pattern(fd, 0, FIRST);
    pid_t child = fork();
    if (child == 0) {
        send_pattern(fd, FIRST, SECOND);
        _exit(0);
    }
    note_end("the child", child);
    meet();
    /* While the other end reads. */
    struct pollfd entry = {fd, POLLIN, 0};
    poll(&entry, 1, 50);
    send_pattern(fd, FIRST + SECOND, THIRD);
    DO(recv(fd, answer, 6, MSG_WAITALL));
    meet();
    DO(close(fd));
}
