/* select with closed numbers: below the end of the kernel's table an error, beyond it nothing; with and without a stream. */
#include "behaviour.h"

static void choose(int fd, int with, int closed) {
    fd_set reads, writes;
    struct timeval time = {0, 0};
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(closed, &reads);
    if (with)
        FD_SET(fd, &writes);
    errno = 0;
    int count = select(1024, &reads, &writes, NULL, &time);
    note("select with%s %d: %d, %s, still there: %d", with ? " the stream and" : "", closed, count, error_name(errno),
         FD_ISSET(closed, &reads));
    struct timespec moment = {0, 0};
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(closed, &reads);
    if (with)
        FD_SET(fd, &writes);
    errno = 0;
    count = pselect(1024, &reads, &writes, NULL, &moment, NULL);
    note("pselect: %d, %s", count, error_name(errno));
}

static void look(int fd) {
    const int numbers[] = {40, 90, 127, 128, 255, 256, 500, 511, 512, 1000, 1023};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        choose(fd, 0, numbers[i]), choose(fd, 1, numbers[i]);
}

static void both(int fd) {
    for (int round = 0; round < 3; round++) {
        if (me == &server_side)
            look(fd);
        meet();
        if (me == &client_side)
            look(fd);
        meet();
        warm(fd);
        if (round == 1 && me == &server_side)
            close(dup2(fd, 300)), note("%d", dup2(fd, 400));
        meet();
    }
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
