/* sendmsg and recvmsg: parts, names, flags, control room. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[200], control[64];
    struct sockaddr_storage name;
    struct iovec parts[2] = {{bytes, 30}, {bytes + 30, 170}};
    struct msghdr message = {&name, sizeof name, parts, 2, control, sizeof control, -1};
    warm(fd);
    meet();
    await_bytes(fd, 150);
    DO(recvmsg(fd, &message, MSG_PEEK));
    DO(right(bytes, 0, 150));
    note("name %u, control %zu, flags %x", message.msg_namelen, message.msg_controllen, message.msg_flags);
    message.msg_namelen = 0, message.msg_controllen = 0;
    DO(recvmsg(fd, &message, 0));
    DO(right(bytes, 0, 150));
    DO(recvmsg(fd, &message, MSG_DONTWAIT));
    note("flags %x", message.msg_flags);
    socklen_t length = sizeof name;
    meet();
    await_bytes(fd, 5);
    DO(recvfrom(fd, bytes, 5, 0, (struct sockaddr *)&name, &length));
    note("name %u", length);
    DO(recvmsg(fd, &message, 0));
    DO(close(fd));
}

static void client(int fd) {
    unsigned char bytes[150];
    struct iovec parts[3] = {{bytes, 50}, {bytes + 50, 99}, {bytes + 149, 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    struct sockaddr_in other = {.sin_family = AF_INET, .sin_port = 1};
    fill(bytes, 0, sizeof bytes);
    warm(fd);
    DO(sendmsg(fd, &message, 0));
    meet();
    meet();
    /* The name is not looked at on a connected stream. */
    DO(sendto(fd, "named", 5, 0, (struct sockaddr *)&other, sizeof other));
    DO(shutdown(fd, SHUT_WR));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
