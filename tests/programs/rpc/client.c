/* The ONC RPC client: client PORT MILLISECONDS. Prints the median of a null call's round trip in nanoseconds. */
#include "echo.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static int less(const void *a, const void *b) { return *(const long *)a < *(const long *)b ? -1 : *(const long *)a > *(const long *)b; }

int main(int argc, char **argv) {
    static long trips[4000000];
    static char bytes[MOST];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct netbuf name = {sizeof address, sizeof address, &address};
    struct timeval patience = {20, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (argc != 3)
        return 2;
    address.sin_port = htons(atoi(argv[1]));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror("connect");
        return 1;
    }
    CLIENT *client = clnt_vc_create(fd, &name, ECHO_PROGRAM, ECHO_VERSION, 0, 0);
    if (!client) {
        clnt_pcreateerror("client");
        return 1;
    }
    for (unsigned length = 1; length <= MOST; length *= 4) {
        payload sent = {length, bytes}, *got;
        memset(bytes, (int)length % 251 + 1, length);
        got = say_1(&sent, client);
        if (!got || got->payload_len != length || memcmp(got->payload_val, bytes, length)) {
            fprintf(stderr, "a wrong answer of %u bytes\n", length);
            return 1;
        }
        clnt_freeres(client, (xdrproc_t)xdr_payload, (char *)got);
    }
    long count = 0, begin = now(), limit = atol(argv[2]) * 1000000l;
    while (now() - begin < limit && count < 4000000) {
        long before = now();
        if (clnt_call(client, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, patience) != RPC_SUCCESS) {
            clnt_perror(client, "null call");
            return 1;
        }
        trips[count++] = now() - before;
    }
    qsort(trips, count, sizeof *trips, less);
    printf("median_ns %ld calls %ld\n", trips[count / 2], count);
    clnt_destroy(client);
    return 0;
}
