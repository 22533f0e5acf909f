/* A blocked receive and signals, with and without SA_RESTART. */
#include "behaviour.h"

static pthread_t receiver;
static int stop;

static void *pester(void *unused UNUSED) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        pause_ms(3);
        pthread_kill(receiver, SIGUSR1);
    }
    return NULL;
}

static void server(int fd) {
    char bytes[100];
    pthread_t thread;
    receiver = pthread_self();
    on_signal(SIGUSR1, 0);
    warm(fd);
    meet();
    pthread_create(&thread, NULL, pester, NULL);
    DO(recv(fd, bytes, 100, 0));
    DO(read(fd, bytes, 100));
    DO(recv(fd, bytes, 100, MSG_PEEK));
    DO(recv(fd, bytes, 100, MSG_WAITALL));
    stop = 1;
    pthread_join(thread, NULL);
    DO(handled > 0);

    /* Something has come already: a part is given, not EINTR. */
    meet();
    await_bytes(fd, 10);
    stop = 0, handled = 0;
    pthread_create(&thread, NULL, pester, NULL);
    DO(recv(fd, bytes, 100, MSG_WAITALL));
    stop = 1;
    pthread_join(thread, NULL);

    /* Restarted: the call goes on until there are bytes. */
    on_signal(SIGUSR1, SA_RESTART);
    stop = 0, handled = 0;
    meet();
    pthread_create(&thread, NULL, pester, NULL);
    DO(recv(fd, bytes, 100, 0));
    while (!__atomic_load_n(&handled, __ATOMIC_SEQ_CST))
        pause_ms(1);
    stop = 1;
    pthread_join(thread, NULL);

    /* A time-out makes a call that is not restarted. */
    struct timeval time = {PATIENCE_MS / 1000, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    stop = 0;
    pthread_create(&thread, NULL, pester, NULL);
    DO(recv(fd, bytes, 100, 0));
    stop = 1;
    pthread_join(thread, NULL);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    meet();
    meet();
    DO(send(fd, "ten bytes", 10, 0));
    meet();
    pause_ms(40);
    DO(send(fd, "x", 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
