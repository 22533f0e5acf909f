/* MSG_DONTWAIT on a blocking socket: EAGAIN when empty and when full, and nothing is lost. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    warm(fd);
    meet();
    DO(recv(fd, &byte, 1, MSG_DONTWAIT));
    meet();
    meet();
    size_t total;
    if (recv(fd, &total, sizeof total, MSG_WAITALL) != sizeof total)
        die("total");
    static unsigned char bytes[100000];
    size_t done = 0;
    while (done < total - sizeof total) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0 || right(bytes, done, got) != (size_t)got)
            break;
        done += got;
    }
    DO(done == total - sizeof total);
    meet();
    DO(close(fd));
}

static void client(int fd) {
    static unsigned char bytes[10000];
    warm(fd);
    meet();
    meet();
    size_t total = 256 << 20, sent = 0;
    /* The total is not known before, so its place is filled with the promise to send just that much. */
    total = 24 << 20;
    DO(send(fd, &total, sizeof total, MSG_DONTWAIT));
    total -= sizeof total;
    int refused = 0;
    for (;;) {
        fill(bytes, sent, sizeof bytes);
        ssize_t got = send(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0) {
            refused = errno;
            break;
        }
        sent += got;
        if (sent + sizeof bytes > total)
            break;
    }
    note("then %s", error_name(refused));
    DO(sent >= 1 << 20);
    DO(send(fd, bytes, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    note_events(fd, POLLOUT);
    meet();
    send_pattern(fd, sent, total - sent);
    meet();
    DO(close(fd));
}
