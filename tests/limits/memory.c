/* Connects to itself, gives up all address space that it does not have yet, and exchanges messages until it is told to
 * end. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void check(int fine) {
    if (!fine)
        perror("memory"), exit(1);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    check(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    check(connect(client, (struct sockaddr *)&address, length) == 0);
    int server = accept(listener, NULL, NULL);
    check(server >= 0);

    unsigned long pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "r");
    check(sizes && fscanf(sizes, "%lu", &pages) == 1);
    fclose(sizes);
    struct rlimit limit = {pages * sysconf(_SC_PAGESIZE), RLIM_INFINITY};
    check(setrlimit(RLIMIT_AS, &limit) == 0);

    char bytes[64] = {0};
    for (int i = 0; i < 100; i++) {
        check(send(client, bytes, 64, 0) == 64 && recv(server, bytes, 64, MSG_WAITALL) == 64);
        check(send(server, bytes, 64, 0) == 64 && recv(client, bytes, 64, MSG_WAITALL) == 64);
    }
    static const char said[] = "exchanged\n";
    check(write(1, said, sizeof said - 1) > 0);
    while (read(0, bytes, sizeof bytes) > 0)
        ;
    return 0;
}
