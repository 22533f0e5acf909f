/* Extended sockets in place: operations go over the connection itself, and plain calls on it are refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sidestep.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: %s: errno %d, %s\n", __LINE__, #what, errno, ss_error());                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static struct ss_completion wait_for(int queue, int kind) {
    struct ss_completion completion;
    do
        CHECK(ss_queue_wait(queue, &completion, 1, 60000) == 1);
    while (completion.kind != kind);
    return completion;
}

static int enable(int fd) {
    int queue = ss_queue_create();
    CHECK(queue >= 0);
    /* The connection carries bytes before, over whatever the library has for that. */
    char byte = 'x';
    for (int round = 0; round < 100; round++)
        CHECK(send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1);
    CHECK(!ss_enable(fd, queue, 60000));
    CHECK(send(fd, "x", 1, 0) == -1 && errno == ENOTCONN);
    CHECK(recv(fd, &byte, 1, 0) == -1 && errno == ENOTCONN);
    return queue;
}

static void server(int fd) {
    int queue = enable(fd);
    ss_region region = ss_register(NULL, 4096, SS_ALL);
    CHECK(region && !ss_export(fd, region, SS_ALL, 5));
    struct ss_completion told = wait_for(queue, SS_NOTICE);
    CHECK(told.token == 77 && told.fd == fd);
    CHECK(!strcmp(ss_address(region), "in place"));
    CHECK(*(uint64_t *)((char *)ss_address(region) + 64) == 42);
    CHECK(!close(fd));
}

static void client(int fd) {
    int queue = enable(fd);
    struct ss_imported about;
    ss_remote remote = ss_import(fd, &about, 60000);
    CHECK(remote && about.tag == 5 && about.direct == 0);
    char back[9];
    uint64_t old;
    CHECK(!ss_put(fd, remote, 0, "in place", 9));
    CHECK(!ss_get(fd, remote, 0, back, 9) && !strcmp(back, "in place"));
    CHECK(!ss_fetch_add(fd, remote, 64, 40, &old) && old == 0);
    CHECK(!ss_compare_swap(fd, remote, 64, 40, 42, &old) && old == 40);
    CHECK(!ss_notify(fd, 77));
    wait_for(queue, SS_CLOSED);
    CHECK(ss_get(fd, remote, 0, back, 9) == -1 && errno == ECONNRESET);
}

int main(void) {
    setenv("SIDESTEP_EXTENDED_IN_PLACE", "1", 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), status = 0;
    CHECK(!bind(fd, (void *)&address, length) && !listen(fd, 1) && !getsockname(fd, (void *)&address, &length));
    if (fork() == 0) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(!connect(fd, (void *)&address, length));
        client(fd);
        return 0;
    }
    int accepted = accept(fd, NULL, NULL);
    CHECK(accepted >= 0);
    server(accepted);
    CHECK(wait(&status) > 0 && status == 0);
    puts("in place");
    return 0;
}
