/* SO_SNDBUF and SO_RCVBUF: what is set is kept, and at least that much is taken. */
#include "behaviour.h"

static void server(int fd) {
    char byte;
    warm(fd);
    set_int(fd, SOL_SOCKET, SO_RCVBUF, 200000);
    DO(get_int(fd, SOL_SOCKET, SO_RCVBUF));
    meet();
    meet();
    size_t sent;
    if (read(me->in, &sent, sizeof sent) != sizeof sent)
        die("sent");
    static unsigned char bytes[65536];
    size_t done = 0;
    while (done < sent) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0 || right(bytes, done, got) != (size_t)got)
            break;
        done += got;
    }
    DO(done == sent);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    static unsigned char bytes[1000];
    warm(fd);
    set_int(fd, SOL_SOCKET, SO_SNDBUF, 100000);
    DO(get_int(fd, SOL_SOCKET, SO_SNDBUF));
    meet();
    size_t sent = 0;
    for (;;) {
        fill(bytes, sent, sizeof bytes);
        ssize_t got = send(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0)
            break;
        sent += got;
    }
    DO(sent >= 100000);
    meet();
    if (write(me->out, &sent, sizeof sent) != sizeof sent)
        die("sent");
    DO(close(fd));
}
