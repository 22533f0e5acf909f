/* A timer interrupts everything, every half millisecond. */
#include "behaviour.h"

static void exchange(int fd, int first, int flags) {
    unsigned char bytes[256];
    on_signal(SIGALRM, flags);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    if (me == &server_side)
        setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 3000; i++)
        for (int turn = 0; turn < 2; turn++) {
            size_t done = 0;
            int sends = first == (turn == 0);
            if (sends)
                fill(bytes, i * 256ul, 256);
            while (done < 256) {
                ssize_t got = sends ? send(fd, bytes + done, 256 - done, 0) : recv(fd, bytes + done, 256 - done, 0);
                if (got < 0 && errno == EINTR)
                    continue;
                if (got <= 0) {
                    note("exchange %d: %s", i, got ? error_name(errno) : "the end");
                    return;
                }
                done += got;
            }
            if (!sends && right(bytes, i * 256ul, 256) != 256)
                note("wrong byte in exchange %d", i);
        }
    if (me == &server_side)
        setitimer(ITIMER_REAL, &never, NULL);
    note("exchanged");
}

static void server(int fd) {
    warm(fd);
    exchange(fd, 0, SA_RESTART);
    meet();
    exchange(fd, 0, 0);
    DO(handled > 2);
    meet();
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    exchange(fd, 1, SA_RESTART);
    meet();
    exchange(fd, 1, 0);
    meet();
    DO(close(fd));
}
