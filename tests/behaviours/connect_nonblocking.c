/* A connect that does not wait, one that is refused, and a second one. */
#define OWN_CONNECT
#include "behaviour.h"

static void server(int fd) {
    warm(fd);
    receive_pattern(fd, 0, 200000);
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int port) {
    struct sockaddr_storage address;
    int closed_port, unused = listen_somewhere(AF_INET, &closed_port);
    close(unused);
    int refused = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    socklen_t length = loopback(&address, AF_INET, closed_port);
    int result = connect(refused, (struct sockaddr *)&address, length);
    if (result < 0 && errno == EINPROGRESS) {
        await_events(refused, POLLOUT);
        result = -1, errno = get_int(refused, SOL_SOCKET, SO_ERROR);
    }
    outcome("refused", result);
    close(refused);

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    length = loopback(&address, AF_INET, port);
    DO(connect(fd, (struct sockaddr *)&address, length));
    note("events %s", events_text(await_events(fd, POLLOUT)));
    DO(get_int(fd, SOL_SOCKET, SO_ERROR));
    DO(connect(fd, (struct sockaddr *)&address, length));
    DO(connect(fd, (struct sockaddr *)&address, length));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    set_nonblocking(fd, 0);
    warm(fd);
    send_pattern(fd, 0, 200000);
    DO(close(fd));
}
