/* Many connections between two processes: crowd CONNECTIONS ROUNDS SIZE [MODE]. Each byte is checked. Then each side prints
 * how much memory it holds, in KiB, and the connections stay until the input ends. In mode "idle" both sides wait for
 * nothing until they hold half of their shared memory; in mode "stamped" the server's sockets have SO_TIMESTAMP. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what) {
    perror(what);
    exit(3);
}

static void move_all(int fd, unsigned char *bytes, size_t length, int sends) {
    for (size_t done = 0; done < length;) {
        ssize_t moved = sends ? send(fd, bytes + done, length - done, MSG_NOSIGNAL) : recv(fd, bytes + done, length - done, 0);
        if (moved <= 0)
            die(sends ? "send" : "recv");
        done += moved;
    }
}

static void fill(unsigned char *bytes, size_t length, unsigned seed) {
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)((seed + i) * 2654435761u >> 11);
}

static long tell_memory(const char *who) {
    long shared = 0;
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    printf("%s", who);
    while (status && fgets(line, sizeof line, status)) {
        long value;
        if (sscanf(line, "RssAnon: %ld", &value) == 1)
            printf(" private %ld", value);
        if (sscanf(line, "RssShmem: %ld", &value) == 1)
            printf(" shared %ld", shared = value);
    }
    printf("\n");
    fflush(stdout);
    if (status)
        fclose(status);
    return shared;
}

/* Waits for what does not come until less than half of that much shared memory is left. */
static void await_release(int fd, const char *who, long before) {
    struct pollfd entry = {fd, POLLPRI, 0};
    for (int i = 0; i < 100; i++) {
        poll(&entry, 1, 300);
        if (tell_memory("") < before / 2) {
            printf("%s released\n", who);
            return;
        }
    }
}

int main(int argc, char **argv) {
    int is_client = argc > 1 && !strcmp(argv[1], "client");
    if (argc < 4)
        return 2;
    int count = atoi(argv[1 + is_client]), rounds = atoi(argv[2 + is_client]);
    size_t size = atol(argv[3 + is_client]);
    const char *mode = argc > 4 + is_client ? argv[4 + is_client] : "";
    int *fds = calloc(count, sizeof *fds);
    unsigned char *bytes = malloc(size), *wanted = malloc(size);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct rlimit limit = {count + 300, 65536};
    setrlimit(RLIMIT_NOFILE, &limit);
    pid_t child = 0;
    if (is_client) {
        address.sin_port = htons(atoi(argv[6]));
    } else {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 1024) < 0)
            die("listen");
        getsockname(listener, (struct sockaddr *)&address, &length);
        child = fork();
        if (child == 0) {
            char port[16];
            snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
            close(listener);
            execl("/proc/self/exe", argv[0], "client", argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "", port,
                  (char *)NULL);
            _exit(127);
        }
        fds[0] = listener;
    }
    int listener = fds[0];
    if (!is_client)
        tell_memory("server before:");
    for (int i = 0; i < count; i++) {
        if (is_client) {
            fds[i] = socket(AF_INET, SOCK_STREAM, 0);
            if (fds[i] < 0 || connect(fds[i], (struct sockaddr *)&address, length) < 0)
                die("connect");
        } else {
            fds[i] = accept(listener, NULL, NULL);
            int on = 1;
            if (fds[i] < 0)
                die("accept");
            if (!strcmp(mode, "stamped"))
                setsockopt(fds[i], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on);
        }
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            for (int turn = 0; turn < 2; turn++) {
                fill(wanted, size, round * 7919 + i * 2 + turn);
                if (is_client == (turn == 0)) {
                    move_all(fds[i], wanted, size, 1);
                } else {
                    move_all(fds[i], bytes, size, 0);
                    if (memcmp(bytes, wanted, size)) {
                        printf("wrong bytes on connection %d in round %d\n", i, round);
                        return 1;
                    }
                }
            }
    long shared = tell_memory(is_client ? "client after:" : "server after:");
    if (!strcmp(mode, "idle"))
        await_release(fds[0], is_client ? "client" : "server", shared);
    char byte;
    if (is_client)
        return recv(fds[0], &byte, 1, 0) == 0 ? 0 : 1;
    printf("exact\n");
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    for (int i = 0; i < count; i++)
        close(fds[i]);
    int status;
    if (waitpid(child, &status, 0) < 0 || status) {
        printf("the client ended with %x\n", status);
        return 1;
    }
    return 0;
}
