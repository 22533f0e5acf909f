/* A reader that looks without a pause, while its peer writes single bytes: it has read everything whenever the next one comes,
 * on whichever path that is. */
#include "behaviour.h"
#include <sched.h>

enum { BYTES = 1500 };

static void server(int fd) {
    warm(fd);
    size_t got = 0;
    unsigned vain = 0;
    for (int64_t end = now_us() + PATIENCE_MS * 1000ll; got < BYTES && now_us() < end;) {
        unsigned char byte;
        ssize_t count = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN) {
            // On a busy core the peer has its turn, too.
            if (++vain % 1000 == 0)
                sched_yield();
            continue;
        }
        if (count != 1 || right(&byte, got, 1) != 1) {
            note("at %zu: %zd, %s", got, count, error_name(count < 0 ? errno : 0));
            break;
        }
        got++;
        if (send(fd, &byte, 1, 0) != 1)
            die("send");
    }
    if (got < BYTES)
        shutdown(fd, SHUT_RDWR);
    DO(got);
    meet();
}

static void client(int fd) {
    warm(fd);
    size_t sent = 0;
    for (; sent < BYTES; sent++) {
        unsigned char byte, back;
        fill(&byte, sent, 1);
        if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || recv(fd, &back, 1, 0) != 1 || back != byte)
            break;
    }
    DO(sent);
    meet();
}
