/* SO_SNDTIMEO: a full connection gives what went, then EAGAIN. */
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    meet();
    meet();
    size_t sent;
    if (read(me->in, &sent, sizeof sent) != sizeof sent)
        die("sent");
    receive_pattern(fd, 0, 1 << 20);
    static unsigned char bytes[65536];
    size_t done = 1 << 20;
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0 && right(bytes, done, got) == (size_t)got)
        done += got;
    DO(done == sent);
    DO(close(fd));
}

static void client(int fd) {
    static unsigned char bytes[64 << 20];
    struct timeval time = {0, 100000};
    warm(fd);
    fill(bytes, 0, sizeof bytes);
    DO(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
    meet();
    int64_t begin = now_us();
    ssize_t sent = send(fd, bytes, sizeof bytes, 0);
    note("a part went: %d, after the time: %d", sent >= 1 << 20 && sent < (64 << 20), now_us() - begin >= 90000);
    /* What the peer's buffers take up in the mean time may go. */
    ssize_t more;
    for (int i = 0; i < 100 && (more = send(fd, bytes + sent, 100000, 0)) > 0; i++)
        sent += more;
    note("then %s", more < 0 ? error_name(errno) : "more");
    meet();
    size_t total = sent;
    if (write(me->out, &total, sizeof total) != sizeof total)
        die("total");
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
