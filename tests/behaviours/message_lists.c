/* sendmmsg and recvmmsg. */
#include "behaviour.h"

static void server(int fd) {
    char bytes[400];
    struct iovec parts[4];
    struct mmsghdr list[4];
    warm(fd);
    meet();
    await_bytes(fd, 300);
    memset(list, 0, sizeof list);
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){bytes + i * 100, 100};
        list[i].msg_hdr.msg_iov = &parts[i], list[i].msg_hdr.msg_iovlen = 1;
    }
    DO(recvmmsg(fd, list, 2, 0, NULL));
    note("lengths %u %u", list[0].msg_len, list[1].msg_len);
    DO(right(bytes, 0, 200));
    DO(recvmmsg(fd, list, 4, MSG_WAITFORONE, NULL));
    note("length %u", list[0].msg_len);
    DO(right(bytes, 200, 100));
    DO(recvmmsg(fd, list, 4, MSG_DONTWAIT, NULL));
    meet();
    DO(recvmmsg(fd, list, 1, 0, NULL));
    note("length %u", list[0].msg_len);
    DO(close(fd));
}

static void client(int fd) {
    unsigned char bytes[300];
    struct iovec parts[3];
    struct mmsghdr list[3];
    fill(bytes, 0, sizeof bytes);
    memset(list, 0, sizeof list);
    for (int i = 0; i < 3; i++) {
        parts[i] = (struct iovec){bytes + i * 100, 100};
        list[i].msg_hdr.msg_iov = &parts[i], list[i].msg_hdr.msg_iovlen = 1;
    }
    warm(fd);
    DO(sendmmsg(fd, list, 3, 0));
    note("lengths %u %u %u", list[0].msg_len, list[1].msg_len, list[2].msg_len);
    meet();
    meet();
    DO(shutdown(fd, SHUT_WR));
    DO(sendmmsg(fd, list, 3, MSG_NOSIGNAL));
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
