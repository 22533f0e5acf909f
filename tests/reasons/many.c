/* A process with many connections to itself, each of which has had some exchanges. Says "ready PID FD LISTENER PORT", with one of
 * the descriptors, makes a hundred exchanges over the first connection for each byte of its standard input, and ends with that. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void check(int fine, const char *what) {
    if (!fine)
        perror(what), exit(1);
}

static void exchange(int *ends, int times) {
    char byte;
    for (int i = 0; i < times; i++)
        for (int from = 0; from < 2; from++)
            check(send(ends[from], "x", 1, 0) == 1 && recv(ends[!from], &byte, 1, 0) == 1, "exchange");
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int many = count > 1 ? atoi(arguments[1]) : 1, exchanges = count > 2 ? atoi(arguments[2]) : 12;
    int (*ends)[2] = calloc(many, sizeof *ends);
    struct rlimit limit;
    char byte;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 16) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    for (int i = 0; i < many; i++) {
        check((ends[i][0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0, "socket");
        check(connect(ends[i][0], (struct sockaddr *)&address, length) == 0, "connect");
        check((ends[i][1] = accept(listener, NULL, NULL)) >= 0, "accept");
        exchange(ends[i], exchanges);
    }
    printf("ready %d %d %d %d\n", getpid(), ends[0][0], listener, ntohs(address.sin_port)), fflush(stdout);
    while (read(0, &byte, 1) > 0)
        exchange(ends[0], 100);
    return 0;
}
