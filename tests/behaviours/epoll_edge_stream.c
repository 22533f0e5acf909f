/* Programs that live on edges: read until EAGAIN, write until EAGAIN, both ways at once. */
#include "behaviour.h"

enum { TOTAL = 6 << 20 };

static void stream(int fd) {
    static __thread unsigned char out[30011], in[20011];
    size_t sent = 0, received = 0;
    int set = epoll_create1(0), wakes = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP};
    set_nonblocking(fd, 1);
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
    while (sent < TOTAL || received < TOTAL) {
        int count = epoll_wait(set, &event, 1, PATIENCE_MS);
        if (count != 1 || ++wakes > 1000000) {
            note("stuck at %zu sent, %zu received", sent, received);
            break;
        }
        while (sent < TOTAL) {
            size_t want = TOTAL - sent < sizeof out ? TOTAL - sent : sizeof out;
            fill(out, sent, want);
            ssize_t got = write(fd, out, want);
            if (got < 0 && errno == EAGAIN)
                break;
            if (got < 0)
                die("write");
            sent += got;
        }
        for (;;) {
            ssize_t got = read(fd, in, sizeof in);
            if (got < 0 && errno == EAGAIN)
                break;
            if (got <= 0)
                break;
            if (right(in, received, got) != (size_t)got)
                die("wrong byte");
            received += got;
        }
    }
    DO(received);
    meet();
    DO(close(set));
    DO(close(fd));
}

static void server(int fd) {
    warm(fd);
    stream(fd);
}

static void client(int fd) {
    warm(fd);
    stream(fd);
}
