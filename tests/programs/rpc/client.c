/*
 * The ONC RPC client: client PORT|PATH MILLISECONDS [SIZE [THREADS]]. It calls for so long, each thread over a connection
 * of its own: procedure 0, or with a SIZE the one that takes as many bytes. It prints times of calls in nanoseconds, how many
 * calls there were in how long, and the processor time that they took; `all` counts also those before the measurement.
 */
#include "echo.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define MOST_TRIPS 4000000
#define MOST_THREADS 64

static char bytes[MOST];
static payload argument = {0, bytes};
static const char *where;
static long warm_until, end_at, all;
static struct result { long *trips, count; } results[MOST_THREADS];

static long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static int less(const void *a, const void *b) { return *(const long *)a < *(const long *)b ? -1 : *(const long *)a > *(const long *)b; }

static CLIENT *open_client(void) {
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr *address = (struct sockaddr *)(*where == '/' ? (void *)&local : (void *)&tcp);
    socklen_t length = *where == '/' ? sizeof local : sizeof tcp;
    struct netbuf name = {length, length, address};
    int fd = socket(address->sa_family, SOCK_STREAM, 0), on = 1;
    strncpy(local.sun_path, where, sizeof local.sun_path - 1);
    tcp.sin_port = htons(atoi(where));
    if (*where != '/')
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, address, length) < 0) {
        perror("connect");
        exit(1);
    }
    CLIENT *client = clnt_vc_create(fd, &name, ECHO_PROGRAM, ECHO_VERSION, 0, 0);
    if (!client) {
        clnt_pcreateerror("client");
        exit(1);
    }
    return client;
}

static void check(CLIENT *client) {
    for (unsigned length = 1; length <= MOST; length *= 4) {
        payload sent = {length, bytes}, *got;
        memset(bytes, (int)length % 251 + 1, length);
        got = say_1(&sent, client);
        if (!got || got->payload_len != length || memcmp(got->payload_val, bytes, length)) {
            fprintf(stderr, "a wrong answer of %u bytes\n", length);
            exit(1);
        }
        clnt_freeres(client, (xdrproc_t)xdr_payload, (char *)got);
    }
}

static void *call(void *given) {
    struct result *result = given;
    struct timeval patience = {20, 0};
    CLIENT *client = open_client();
    rpcproc_t procedure = argument.payload_len ? TAKE : NULLPROC;
    xdrproc_t encode = argument.payload_len ? (xdrproc_t)xdr_payload : (xdrproc_t)xdr_void;
    long before = now(CLOCK_MONOTONIC), calls = 0;
    while (before < end_at && result->count < MOST_TRIPS) {
        if (clnt_call(client, procedure, encode, (char *)&argument, (xdrproc_t)xdr_void, NULL, patience) != RPC_SUCCESS) {
            clnt_perror(client, "call");
            exit(1);
        }
        long after = now(CLOCK_MONOTONIC);
        if (before >= warm_until)
            result->trips[result->count++] = after - before;
        calls++;
        before = after;
    }
    __atomic_add_fetch(&all, calls, __ATOMIC_RELAXED);
    clnt_destroy(client);
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 4 ? atoi(argv[4]) : 1;
    pthread_t started[MOST_THREADS];
    if (argc < 3 || threads < 1 || threads > MOST_THREADS)
        return 2;
    where = argv[1];
    CLIENT *first = open_client();
    check(first);
    clnt_destroy(first);
    argument.payload_len = argc > 3 ? atoi(argv[3]) : 0;
    if (argument.payload_len > MOST)
        return 2;
    long used = now(CLOCK_PROCESS_CPUTIME_ID), begin = now(CLOCK_MONOTONIC);
    long run = atol(argv[2]) * 1000000l;
    warm_until = begin + run / 5;
    end_at = warm_until + run;
    for (int thread = 0; thread < threads; thread++) {
        results[thread].trips = malloc(MOST_TRIPS * sizeof(long));
        if (!results[thread].trips || pthread_create(&started[thread], NULL, call, &results[thread]))
            return 1;
    }
    for (int thread = 0; thread < threads; thread++)
        pthread_join(started[thread], NULL);
    used = now(CLOCK_PROCESS_CPUTIME_ID) - used;
    long count = 0, *trips;
    for (int thread = 0; thread < threads; thread++)
        count += results[thread].count;
    trips = malloc((count + 1) * sizeof *trips);
    if (!trips || !count)
        return 1;
    for (int thread = 0, at = 0; thread < threads; at += results[thread++].count)
        memcpy(trips + at, results[thread].trips, results[thread].count * sizeof *trips);
    qsort(trips, count, sizeof *trips, less);
    printf("median_ns %ld p99_ns %ld p999_ns %ld calls %ld elapsed_ns %ld all %ld cpu_ns %ld\n", trips[count / 2],
           trips[count * 99 / 100], trips[count * 999 / 1000], count, run, all, used);
    return 0;
}
