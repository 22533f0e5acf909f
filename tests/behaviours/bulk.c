/* Much data in odd pieces, both ways at once. */
#include "behaviour.h"

enum { TOTAL = 24 << 20 };

static void *writer(void *number) {
    static __thread unsigned char bytes[200001];
    int fd = (int)(intptr_t)number;
    unsigned seed = 1;
    for (size_t sent = 0; sent < TOTAL;) {
        seed = seed * 1103515245u + 12345u;
        size_t want = 1 + (seed >> 8) % (seed & 0x80 ? 200000 : 300);
        if (want > TOTAL - sent)
            want = TOTAL - sent;
        fill(bytes, sent, want);
        for (size_t done = 0; done < want;) {
            ssize_t got = write(fd, bytes + done, want - done);
            if (got < 0)
                die("write");
            done += got;
        }
        sent += want;
    }
    return NULL;
}

static void both(int fd) {
    pthread_t thread;
    warm(fd);
    pthread_create(&thread, NULL, writer, (void *)(intptr_t)fd);
    receive_pattern(fd, 0, TOTAL);
    pthread_join(thread, NULL);
    meet();
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
