/* Threads of both ends open and close connections all the time, some just when their ends agree on another path: what comes is
 * always what was sent on the same connection. */
#define OWN_ROLES
#include "behaviour.h"

enum { THREADS = 4, CONNECTIONS = 150, MOST = 8, PIECE = 40 };

static int connections;

/* So many exchanges, all of whose bytes follow from the number of the connection. */
static int exchange(int fd, unsigned number, int serves) {
    unsigned char bytes[PIECE];
    for (unsigned i = 0; i <= number % MOST; i++) {
        for (int turn = 0; turn < 2; turn++) {
            int sends = serves == turn;
            if (sends) {
                fill(bytes, number * 4096 + i * PIECE, PIECE);
                if (send(fd, bytes, PIECE, MSG_NOSIGNAL) != PIECE)
                    return 0;
            } else if (recv(fd, bytes, PIECE, MSG_WAITALL) != PIECE || right(bytes, number * 4096 + i * PIECE, PIECE) != PIECE) {
                return 0;
            }
        }
    }
    return 1;
}

static void *asks(void *port) {
    long wrong = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        unsigned number = __atomic_add_fetch(&connections, 1, __ATOMIC_SEQ_CST);
        int fd = dial(AF_INET, (int)(intptr_t)port);
        wrong += send(fd, &number, sizeof number, 0) != sizeof number || !exchange(fd, number, 0);
        close(fd);
    }
    return (void *)wrong;
}

static void *answers(void *listener) {
    long wrong = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        unsigned number = 0;
        int fd = accept_one((int)(intptr_t)listener);
        wrong += recv(fd, &number, sizeof number, MSG_WAITALL) != sizeof number || !exchange(fd, number, 1);
        close(fd);
    }
    return (void *)wrong;
}

static void in_threads(void *(*what)(void *), int argument) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, what, (void *)(intptr_t)argument))
            die("pthread_create");
    long wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    if (wrong)
        note("%ld connections were wrong", wrong);
}

static void role(const char *name UNUSED, int port) { in_threads(asks, port); }

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t client = start_role("client", port);
    in_threads(answers, listener);
    note_end("the client", client);
}
