/* Lists of buffers are the program's: calls read them and never write them. They may lie in read-only memory, and the
 * program uses them again for its next call. */
#include "behaviour.h"

static char bytes[400000];

/* Puts a list into a page of its own that nobody can write. */
static const void *set_in_stone(const void *list, size_t length) {
    void *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || length > 65536)
        die("mmap");
    memcpy(page, list, length);
    if (mprotect(page, 65536, PROT_READ) < 0)
        die("mprotect");
    return page;
}

/* A list of this many parts for so many bytes. */
static const struct iovec *list_for(size_t length, int parts) {
    static __thread struct iovec list[1024];
    for (int i = 0; i < parts; i++)
        list[i] = (struct iovec){bytes + length / parts * i, length / parts};
    list[parts - 1].iov_len += length % parts;
    return set_in_stone(list, sizeof *list * parts);
}

enum { PIECES = 30, PART = 1000, WHOLE = PIECES * PART };

static void server(int fd) {
    static const int sizes[] = {2, 8, 9, 1024};
    size_t at = 0;
    warm(fd);
    for (int i = 0; i < 4; i++) {
        struct msghdr message = {.msg_iov = (struct iovec *)list_for(WHOLE, sizes[i]), .msg_iovlen = sizes[i]};
        meet();
        note("%d parts", sizes[i]);
        DO(recvmsg(fd, &message, MSG_WAITALL));
        DO(right(bytes, at, WHOLE));
        at += WHOLE;
        /* The same list again. */
        DO(recvmsg(fd, &message, MSG_WAITALL));
        DO(right(bytes, at, WHOLE));
        at += WHOLE;
        struct mmsghdr several[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
        DO(recvmmsg(fd, several, 2, MSG_WAITALL, NULL));
        note("%u, %u", several[0].msg_len, several[1].msg_len);
        DO(right(bytes, at + WHOLE, WHOLE));
        at += 2 * WHOLE;
        set_int(fd, SOL_SOCKET, SO_RCVLOWAT, WHOLE);
        DO(readv(fd, message.msg_iov, sizes[i]));
        DO(right(bytes, at, WHOLE));
        at += WHOLE;
        DO(preadv2(fd, message.msg_iov, sizes[i], -1, 0));
        DO(right(bytes, at, WHOLE));
        at += WHOLE;
        set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
        DO(recvmsg(fd, &message, MSG_WAITALL | MSG_PEEK));
        DO(right(bytes, at, WHOLE));
        DO(recvmsg(fd, &message, MSG_WAITALL));
        at += WHOLE;
    }
    meet();
    /* What is larger than any ring, from lists that are used again. */
    for (int i = 0; i < 4; i++) {
        receive_pattern(fd, 0, sizeof bytes);
        receive_pattern(fd, 0, sizeof bytes);
        receive_pattern(fd, 0, sizeof bytes);
        receive_pattern(fd, 0, sizeof bytes);
    }
    DO(close(fd));
}

static void client(int fd) {
    static const int sizes[] = {2, 8, 9, 1024};
    size_t at = 0;
    warm(fd);
    for (int i = 0; i < 4; i++) {
        meet();
        for (int piece = 0; piece < 7 * PIECES; piece++, at += PART) {
            send_pattern(fd, at, PART);
            if (piece % 8 == 0)
                pause_ms(1);
        }
    }
    meet();
    pause_ms(20);
    fill(bytes, 0, sizeof bytes);
    for (int i = 0; i < 4; i++) {
        const struct iovec *parts = list_for(sizeof bytes, sizes[i]);
        struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = sizes[i]};
        const struct msghdr *header = set_in_stone(&message, sizeof message);
        struct mmsghdr one = {.msg_hdr = message};
        note("%d parts", sizes[i]);
        DO(writev(fd, parts, sizes[i]));
        DO(sendmsg(fd, header, 0));
        DO(sendmmsg(fd, &one, 1, 0));
        DO(pwritev2(fd, parts, sizes[i], -1, 0));
    }
    char byte;
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
