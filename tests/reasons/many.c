/* A process with many connections to itself, each of which has had some exchanges. Says "ready PID FD LISTENER PORT", with one of
 * the descriptors, and stays until its standard input ends. */
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
        for (int j = 0; j < exchanges; j++)
            for (int k = 0; k < 2; k++)
                check(send(ends[i][k], "x", 1, 0) == 1 && recv(ends[i][!k], &byte, 1, 0) == 1, "exchange");
    }
    printf("ready %d %d %d %d\n", getpid(), ends[0][0], listener, ntohs(address.sin_port)), fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}
