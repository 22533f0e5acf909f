// The load over TCP with what the kernel has against its own costs: ./tcp serve PORT WAY, ./tcp ask PORT WAY MILLISECONDS.
// WAY is `busy` (SO_BUSY_POLL, and receives that do not sleep) or `zerocopy` (MSG_ZEROCOPY for what is large).
#include <errno.h>
#include <time.h>

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

static int wire, busy, zerocopy;
static uint32_t posted, finished;

// Takes what the kernel says of sends that it has finished with.
static void reap(void) {
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(wire, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        struct sock_extended_err *error = (struct sock_extended_err *)CMSG_DATA(part);
        if (error->ee_origin == SO_EE_ORIGIN_ZEROCOPY) finished = error->ee_data + 1;
    }
}

static void send_message(const void *bytes, size_t size) {
    int flags = MSG_NOSIGNAL | (zerocopy && size >= 16384 ? MSG_ZEROCOPY : 0);
    for (size_t done = 0; done < size;) {
        ssize_t count = send(wire, (const char *)bytes + done, size - done, flags);
        if (count < 0 && errno == ENOBUFS) {
            reap();
        } else if (count < 0 && errno != EAGAIN) {
            refuse("send");
        } else if (count > 0) {
            done += count;
            posted += flags & MSG_ZEROCOPY ? 1 : 0;
        }
    }
    // The buffer is used again: not more of it than some messages may be under way.
    while (posted - finished > 16) reap();
}

static void receive_message(void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = recv(wire, (char *)bytes + done, size - done, busy ? MSG_DONTWAIT : 0);
        if (count == 0) exit(0);
        if (count < 0 && errno != EAGAIN && errno != EINTR) refuse("recv");
        if (count > 0) done += count;
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int one = 1, microseconds = 50, is_server = !strcmp(argv[1], "serve");
    busy = !strcmp(argv[3], "busy");
    zerocopy = !strcmp(argv[3], "zerocopy");
    wire = socket(AF_INET, SOCK_STREAM, 0);
    if (is_server) {
        int door = wire;
        setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(door, (void *)&address, sizeof address) || listen(door, 1)) refuse("listen");
        wire = accept(door, NULL, NULL);
    } else {
        int tries = 0;
        while (connect(wire, (void *)&address, sizeof address)) {
            if (++tries > 500) refuse("connect");
            close(wire);
            usleep(10000);
            wire = socket(AF_INET, SOCK_STREAM, 0);
        }
    }
    setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (busy) setsockopt(wire, SOL_SOCKET, SO_BUSY_POLL, &microseconds, sizeof microseconds);
    if (zerocopy && setsockopt(wire, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one)) refuse("SO_ZEROCOPY");
    if (is_server)
        serve();
    else
        ask(argc > 4 ? strtoull(argv[4], NULL, 10) : 100);
    return 0;
}
