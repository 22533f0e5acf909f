/* A full connection is not writable; it is again when the peer has read, and a sleeping poll is woken. */
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    meet();
    size_t total;
    if (read(me->in, &total, sizeof total) != sizeof total)
        die("total");
    pause_ms(50);
    receive_pattern(fd, 0, 1 << 20);
    static unsigned char bytes[65536];
    size_t done = 1 << 20;
    while (done < total) {
        ssize_t got = recv(fd, bytes, total - done < sizeof bytes ? total - done : sizeof bytes, 0);
        if (got <= 0 || right(bytes, done, got) != (size_t)got)
            break;
        done += got;
    }
    DO(done == total);
    meet();
    DO(close(fd));
}

static void client(int fd) {
    static unsigned char bytes[8192];
    size_t sent = 0;
    warm(fd);
    set_nonblocking(fd, 1);
    for (;;) {
        fill(bytes, sent, sizeof bytes);
        ssize_t got = send(fd, bytes, sizeof bytes, 0);
        if (got < 0)
            break;
        sent += got;
        if (sent > 1u << 30)
            die("it takes everything");
    }
    note("full: %s", error_name(errno));
    DO(sent >= 1 << 20);
    note_events(fd, POLLOUT);
    struct pollfd entry = {fd, POLLOUT, 0};
    DO(poll(&entry, 1, 20));
    meet();
    if (write(me->out, &sent, sizeof sent) != sizeof sent)
        die("sent");
    DO(poll(&entry, 1, PATIENCE_MS));
    note("again: %s", events_text(entry.revents));
    meet();
    char byte;
    set_nonblocking(fd, 0);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
