/* select and pselect. */
#include "behaviour.h"

static fd_set in, out, odd;

static int choose(int fd, int more, struct timeval *time) {
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&odd);
    FD_SET(fd, &in);
    if (more & 1)
        FD_SET(fd, &out);
    if (more & 2)
        FD_SET(fd, &odd);
    return select(fd + 1, &in, &out, &odd, time);
}

static void note_sets(int fd) {
    note("in %d, out %d, odd %d", FD_ISSET(fd, &in), FD_ISSET(fd, &out), FD_ISSET(fd, &odd));
}

static void server(int fd) {
    char byte;
    warm(fd);
    meet();
    struct timeval time = {0, 0};
    DO(choose(fd, 0, &time));
    note_sets(fd);
    time.tv_usec = 30000;
    DO(choose(fd, 2, &time));
    note("left %ld", time.tv_sec + time.tv_usec);
    DO(choose(fd, 3, NULL));
    note_sets(fd);
    meet();
    DO(choose(fd, 0, NULL));
    note_sets(fd);
    DO(choose(fd, 1, NULL));
    note_sets(fd);
    DO(recv(fd, &byte, 1, 0));
    meet();
    struct timespec long_time = {PATIENCE_MS / 1000, 0};
    FD_ZERO(&in);
    FD_SET(fd, &in);
    DO(pselect(fd + 1, &in, NULL, NULL, &long_time, NULL));
    DO(recv(fd, &byte, 1, 0));
    FD_ZERO(&in);
    FD_SET(99, &in);
    DO(select(100, &in, NULL, NULL, NULL));
    DO(select(-1, &in, NULL, NULL, NULL));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    pause_ms(20);
    DO(send(fd, "a", 1, 0));
    meet();
    DO(shutdown(fd, SHUT_WR));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
