/* What poll says along the life of a connection, beside other descriptors. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[100];
    int ends[2];
    warm(fd);
    if (pipe(ends) < 0)
        die("pipe");
    struct pollfd list[4] = {{fd, POLLIN | POLLRDHUP, 0}, {ends[0], POLLIN, 0}, {-7, POLLIN, 77}, {99, POLLIN, 0}};
    DO(poll(list, 3, 0));
    DO(poll(list, 3, 30));
    DO(list[2].revents);
    DO(poll(list, 4, -1));
    note("a closed one: %s", events_text(list[3].revents));
    list[0].events |= POLLOUT;
    DO(poll(list, 3, -1));
    note("idle: %s", events_text(list[0].revents));
    list[0].events = POLLIN;
    DO(write(ends[1], "p", 1));
    DO(poll(list, 2, -1));
    note("socket %s", events_text(list[0].revents));
    note("pipe %s", events_text(list[1].revents));
    meet();
    await_bytes(fd, 5);
    DO(poll(list, 2, -1));
    note("both: %s", events_text(list[0].revents));
    DO(read(ends[0], bytes, 1));
    DO(poll(list, 2, -1));
    DO(recv(fd, bytes, 2, 0));
    DO(poll(list, 2, -1));
    DO(recv(fd, bytes, 100, 0));
    DO(poll(list, 2, 0));
    meet();
    DO(poll(list, 2, PATIENCE_MS));
    DO(recv(fd, bytes, 100, 0));
    meet();
    list[0].events = POLLIN | POLLOUT | POLLRDHUP;
    settle_events(fd, POLLIN | POLLOUT | POLLRDHUP, POLLIN | POLLOUT | POLLRDHUP);
    DO(poll(list, 1, -1));
    note("after the peer's end: %s", events_text(list[0].revents));
    DO(shutdown(fd, SHUT_WR));
    note("after both: %s", events_text(settle_events(fd, POLLIN | POLLOUT | POLLRDHUP,
                                                     POLLIN | POLLOUT | POLLRDHUP | POLLHUP)));
    DO(close(fd));
    meet();
}

static void client(int fd) {
    warm(fd);
    meet();
    DO(send(fd, "hello", 5, 0));
    meet();
    pause_ms(30);
    DO(send(fd, "woken", 5, 0));
    meet();
    DO(shutdown(fd, SHUT_WR));
    meet();
    DO(close(fd));
}
