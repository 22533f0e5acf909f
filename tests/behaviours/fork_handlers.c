/* Handlers and the program's own functions for fork use descriptors in the middle of a fork. */
#include "behaviour.h"

static int own, port, listener, calls, failures, stop;
static pthread_t forker;

static void use_descriptors(void) {
    int error = errno, copy = dup(own), fd, other;
    struct sockaddr_storage address;
    socklen_t length = loopback(&address, AF_INET, port);
    if (copy < 0 || dup2(own, copy) != copy || close(copy) < 0)
        failures++;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0 || (other = accept(listener, NULL, NULL)) < 0 ||
        close(fd) < 0 || close(other) < 0)
        failures++;
    calls++;
    errno = error;
}

static void handler(int number UNUSED) { use_descriptors(); }

static void *pester(void *unused UNUSED) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        pthread_kill(forker, SIGUSR1);
        for (int i = 0; i < 20; i++)
            sched_yield();
    }
    return NULL;
}

static void server(int fd) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    pthread_t thread;
    int ended = 0;
    own = fd;
    listener = listen_somewhere(AF_INET, &port);
    forker = pthread_self();
    warm(fd);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, pester, NULL);
    for (int round = 0; round < 60; round++) {
        int status;
        pid_t child;
        if (round == 30)
            pthread_atfork(use_descriptors, use_descriptors, NULL);
        child = fork();
        if (child == 0)
            _exit(0);
        while (waitpid(child, &status, 0) < 0)
            ;
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    note("%d children ended, %d failures, calls: %d", ended, failures, calls > 0);
    DO(send(fd, "x", 1, 0));
    DO(close(fd));
    close(listener);
}

static void client(int fd) {
    char byte;
    warm(fd);
    DO(recv(fd, &byte, 1, 0));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
