/* A close that lingers holds up nobody else: other threads connect, accept, close and fork meanwhile. */
#include "behaviour.h"

static void *closes(void *of) {
    close((int)(intptr_t)of);
    return NULL;
}

static void server(int fd) {
    enum { LINGER_S = 15 };
    struct linger linger = {1, LINGER_S};
    static char bytes[65536];
    int port, listener = listen_somewhere(AF_INET, &port), full = 0;
    pthread_t thread;
    warm(fd);
    /* Until neither end has room for more. */
    for (int64_t end = now_us() + 5000000; full < 3 && now_us() < end;)
        if (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) < 0)
            full++, pause_ms(250);
        else
            full = 0;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    pthread_create(&thread, NULL, closes, (void *)(intptr_t)fd);
    pause_ms(50);
    int64_t begin = now_us();
    for (int i = 0; i < 5; i++) {
        int one = dial(AF_INET, port), other = accept_one(listener), copy = dup(one);
        char byte = 'x';
        if (send(one, &byte, 1, 0) != 1 || recv(other, &byte, 1, 0) != 1)
            note("no byte");
        close(copy), close(one), close(other);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        note_end("child", child);
    }
    note("nobody waited: %d", now_us() - begin < LINGER_S * 500000ll);
    meet();
    pthread_join(thread, NULL);
}

static void client(int fd) {
    static char bytes[65536];
    ssize_t got;
    warm(fd);
    meet();
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    note("then %s", got == 0 ? "the end" : error_name(errno));
    DO(close(fd));
}
