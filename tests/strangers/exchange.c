/* Two programs that exchange numbered messages without end, while somebody attacks them: `serve`, which says its port, and
 * `client PORT`. Every message must come back as it was sent. On a line of input the client says how many exchanges it has
 * made, over how many connections, and how many descriptors it has open; `serve` says the last only.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LEN = 64, A_CONNECTION = 3000 };
static atomic_ulong exchanges, connections;

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static int descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void *answer_questions(void *unused) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        printf("count %lu %lu %d\n", atomic_load(&exchanges), atomic_load(&connections), descriptors());
        fflush(stdout);
    }
    exit(0);
    return unused;
}

static int all(int fd, char *bytes, int sends) {
    for (int done = 0; done < LEN;) {
        ssize_t n = sends ? send(fd, bytes + done, LEN - done, MSG_NOSIGNAL) : recv(fd, bytes + done, LEN - done, 0);
        if (n == 0)
            return 0;
        if (n < 0)
            die(sends ? "send" : "recv");
        done += n;
    }
    return 1;
}

static void *echo(void *argument) {
    int fd = (int)(intptr_t)argument;
    char bytes[LEN];
    while (all(fd, bytes, 0))
        all(fd, bytes, 1);
    close(fd);
    return NULL;
}

static void serve(int listener) {
    for (;;) {
        int fd = accept(listener, NULL, NULL), one = 1;
        if (fd < 0)
            die("accept");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pthread_t thread;
        pthread_create(&thread, NULL, echo, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
}

static void exchange(struct sockaddr_in *address) {
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        if (connect(fd, (struct sockaddr *)address, sizeof *address) < 0)
            die("connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        atomic_fetch_add(&connections, 1);
        for (int i = 0; i < A_CONNECTION; i++) {
            char sent[LEN], back[LEN];
            for (int at = 0; at < LEN; at++)
                sent[at] = (char)(i * 31 + at * 7);
            all(fd, sent, 1);
            if (!all(fd, back, 0))
                die("an end");
            if (memcmp(sent, back, LEN) != 0)
                die("other bytes came back");
            atomic_fetch_add(&exchanges, 1);
        }
        close(fd);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    pthread_t thread;
    if (argc == 3) {
        address.sin_port = htons(atoi(argv[2]));
        pthread_create(&thread, NULL, answer_questions, NULL);
        exchange(&address);
    }
    int listener = socket(AF_INET, SOCK_STREAM, 0), port = 20000 + getpid() % 8000;
    /* Below those that clients get: who has the smaller port is asked, so all sessions of the pair go one way. */
    do
        address.sin_port = htons(++port);
    while (bind(listener, (struct sockaddr *)&address, len) < 0 && port < 32000);
    if (listen(listener, 64) < 0)
        die("listen");
    getsockname(listener, (struct sockaddr *)&address, &len);
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    pthread_create(&thread, NULL, answer_questions, NULL);
    serve(listener);
}
