// The same load for every library: `exchange` sends a message and waits for one of the same size, `stream` sends messages and waits
// for a last one that says that all have come. Each program defines them for its library; its first argument says which end it is.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGEST (1 << 20)

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static inline void refuse(const char *what) {
    perror(what);
    exit(1);
}

// What a client asks its server for: `count` messages of `size` bytes, each to be answered or only the last.
struct order {
    uint64_t count, size, answered;
};

static void send_message(const void *bytes, size_t size);
static void receive_message(void *bytes, size_t size);

static char *buffer(void) {
    char *bytes = aligned_alloc(4096, LARGEST);
    memset(bytes, 7, LARGEST);
    return bytes;
}

static void serve(void) {
    struct order order;
    char *bytes = buffer();
    for (;;) {
        receive_message(&order, sizeof order);
        if (order.count == 0) return;
        for (uint64_t done = 0; done < order.count; done++) {
            receive_message(bytes, order.size);
            if (order.answered) send_message(bytes, order.size);
        }
        if (!order.answered) send_message(bytes, 8);
    }
}

static uint64_t turn(uint64_t count, uint64_t size, uint64_t answered, char *bytes) {
    struct order order = {count, size, answered};
    uint64_t begin = now();
    send_message(&order, sizeof order);
    for (uint64_t done = 0; done < count; done++) {
        send_message(bytes, size);
        if (answered) receive_message(bytes, size);
    }
    if (!answered) receive_message(bytes, 8);
    return now() - begin;
}

// So many messages that they take about `wanted` nanoseconds, found by trying.
static double per_message(uint64_t size, uint64_t answered, uint64_t wanted, char *bytes) {
    uint64_t count = 4, time = turn(count, size, answered, bytes);
    while (time < wanted / 4) {
        count *= 2;
        time = turn(count, size, answered, bytes);
    }
    count = count * wanted / (time + 1) + 1;
    return (double)turn(count, size, answered, bytes) / count;
}

static void ask(uint64_t milliseconds) {
    uint64_t wanted = milliseconds * 1000000;
    char *bytes = buffer();
    printf("latency_ns %.1f\n", per_message(64, 1, wanted, bytes) / 2);
    printf("rate %.0f\n", 1e9 / per_message(64, 0, wanted, bytes));
    printf("bandwidth_64k %.0f\n", 65536e9 / per_message(65536, 0, wanted, bytes));
    printf("bandwidth_1m %.0f\n", 1048576e9 / per_message(1048576, 0, wanted, bytes));
    struct order end = {0, 0, 0};
    send_message(&end, sizeof end);
}
