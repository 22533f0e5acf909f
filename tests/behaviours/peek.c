/* MSG_PEEK takes nothing. */
#include "behaviour.h"

static void server(int fd) {
    static char bytes[200000];
    warm(fd);
    meet();
    await_bytes(fd, 100000);
    for (int i = 0; i < 3; i++) {
        DO(recv(fd, bytes, 10, MSG_PEEK));
        note("%08x", checksum(bytes, 10));
    }
    DO(recv(fd, bytes, 100000, MSG_PEEK | MSG_WAITALL));
    DO(right(bytes, 0, 100000));
    DO(recv(fd, bytes, 33, 0));
    DO(recv(fd, bytes, 50, MSG_PEEK | MSG_DONTWAIT));
    DO(right(bytes, 33, 50));
    receive_pattern(fd, 33, 100000 - 33);
    DO(recv(fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT));
    meet();
    DO(recv(fd, bytes, 1, MSG_PEEK));
    DO(recv(fd, bytes, 1, 0));
    DO(recv(fd, bytes, 1, MSG_PEEK));
    DO(recv(fd, bytes, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    warm(fd);
    send_pattern(fd, 0, 100000);
    meet();
    meet();
    DO(send(fd, "x", 1, 0));
    DO(close(fd));
}
