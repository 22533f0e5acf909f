/* Two threads read one socket, two write: every byte once. */
#include "behaviour.h"

enum { MESSAGES = 20000, SIZE = 64 };

struct part {
    int fd, value;
    uint64_t sum, bytes;
};

static void *read_some(void *argument) {
    struct part *part = argument;
    unsigned char bytes[SIZE];
    ssize_t got;
    while ((got = recv(part->fd, bytes, sizeof bytes, 0)) > 0)
        for (ssize_t i = 0; i < got; i++)
            part->sum += bytes[i], part->bytes++;
    return NULL;
}

static void *write_some(void *argument) {
    struct part *part = argument;
    unsigned char bytes[SIZE];
    memset(bytes, part->value, sizeof bytes);
    for (int i = 0; i < MESSAGES; i++)
        for (size_t done = 0; done < SIZE;) {
            ssize_t sent = send(part->fd, bytes + done, SIZE - done, 0);
            if (sent < 0)
                die("send");
            done += sent;
        }
    return NULL;
}

static void server(int fd) {
    pthread_t threads[2];
    struct part parts[2] = {{fd, 0, 0, 0}, {fd, 0, 0, 0}};
    warm(fd);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, read_some, &parts[i]);
    meet();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    note("bytes %llu, sum %llu", (unsigned long long)(parts[0].bytes + parts[1].bytes),
         (unsigned long long)(parts[0].sum + parts[1].sum));
    DO(close(fd));
}

static void client(int fd) {
    pthread_t threads[2];
    struct part parts[2] = {{fd, 3, 0, 0}, {fd, 4, 0, 0}};
    char byte;
    warm(fd);
    meet();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, write_some, &parts[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    DO(shutdown(fd, SHUT_WR));
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
