/* A blocked send and signals: a part, or EINTR; restarted only where nothing had gone. */
#include "behaviour.h"

static pthread_t sender;
static int stop;

static void *pester(void *unused UNUSED) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        pause_ms(20);
        pthread_kill(sender, SIGUSR1);
    }
    return NULL;
}

static void server(int fd) {
    warm(fd);
    meet();
    meet();
    size_t sent;
    if (read(me->in, &sent, sizeof sent) != sizeof sent)
        die("sent");
    static unsigned char bytes[65536];
    size_t done = 0;
    ssize_t got;
    while (done < sent && (got = recv(fd, bytes, sizeof bytes, 0)) > 0 && right(bytes, done, got) == (size_t)got)
        done += got;
    DO(done == sent);
    DO(close(fd));
}

static void client(int fd) {
    static unsigned char bytes[64 << 20];
    pthread_t thread;
    sender = pthread_self();
    on_signal(SIGUSR1, 0);
    fill(bytes, 0, sizeof bytes);
    warm(fd);
    meet();
    pthread_create(&thread, NULL, pester, NULL);
    ssize_t sent = send(fd, bytes, sizeof bytes, 0), more;
    note("a part went: %d", sent > 0 && sent < (64 << 20));
    for (int i = 0; i < 200 && (more = write(fd, bytes + sent, 1000000)) > 0; i++)
        sent += more;
    note("then %s", more < 0 ? error_name(errno) : "more");
    stop = 1;
    pthread_join(thread, NULL);
    DO(handled > 0);
    meet();
    size_t total = sent;
    if (write(me->out, &total, sizeof total) != sizeof total)
        die("total");
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
