/* A server publishes prices in memory that its client reads by itself; the same as crates/extended/examples/prices.rs.
 *
 *   cc prices.c $(pkg-config --cflags --libs sidestep) -o prices && ./prices
 *
 * On two hosts: SIDESTEP_EXTENDED_PORT=7471 ./prices 10.0.0.1 8000 server, and the same with client. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sidestep.h>

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, ss_error());
    exit(1);
}

static void enable(int fd) {
    int queue = ss_queue_create();
    if (queue < 0 || ss_enable(fd, queue, 10000))
        fail("cannot extend the socket");
}

static void server(int fd) {
    enable(fd);
    ss_region prices = ss_register(NULL, 4096, SS_READ);
    volatile uint64_t *price = ss_address(prices);
    if (!prices || ss_export(fd, prices, SS_READ, 1))
        fail("cannot export the prices");
    char byte = '!';
    /* A byte says that the price has changed; the price itself is never sent. */
    *price = 120;
    if (send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
        exit(1);
}

static void client(int fd) {
    enable(fd);
    struct ss_imported about;
    ss_remote prices = ss_import(fd, &about, 10000);
    if (!prices)
        fail("cannot import the prices");
    printf("the client reads without the server: %s\n", about.direct ? "yes" : "no");
    if (ss_put(fd, prices, 0, "0", 1))
        printf("the client may not write: %s\n", ss_error());
    char byte;
    uint64_t price;
    if (recv(fd, &byte, 1, 0) != 1 || ss_get(fd, prices, 0, &price, sizeof price))
        fail("cannot read a price");
    printf("the price is %lu\n", (unsigned long)price);
    if (send(fd, &byte, 1, 0) != 1)
        exit(1);
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (count == 4) {
        address.sin_port = htons(atoi(arguments[2]));
        if (inet_pton(AF_INET, arguments[1], &address.sin_addr) != 1)
            return 2;
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0), status = 0;
    if (count != 4 || arguments[3][0] != 'c') {
        if (bind(fd, (void *)&address, length) || listen(fd, 1) || getsockname(fd, (void *)&address, &length))
            return 2;
        if (count == 4 || fork() != 0) {
            server(accept(fd, NULL, NULL));
            return count == 4 ? 0 : wait(&status) < 0 || status != 0;
        }
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    if (connect(fd, (void *)&address, length))
        return 2;
    client(fd);
    return 0;
}
