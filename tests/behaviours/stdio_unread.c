/* Bytes that have come and were not read, when the program goes over to calls that read inside libc or the kernel: stdio,
 * asynchronous input, preadv2 with flags, and the standard descriptors. */
#include "behaviour.h"
#include <aio.h>

enum { PIECE = 3000, WAYS = 4 };

static int standard;

static void read_all(int fd, int way) {
    static unsigned char bytes[PIECE];
    size_t position = (size_t)way * PIECE;
    memset(bytes, 0, sizeof bytes);
    if (way == 0) {
        FILE *stream = fdopen(dup(fd), "r");
        note("stdio: %zu", fread(bytes, 1, PIECE, stream));
        fclose(stream);
    } else if (way == 1) {
        size_t done = 0;
        while (done < PIECE) {
            struct iovec part = {bytes + done, PIECE - done};
            ssize_t got = preadv2(fd, &part, 1, -1, RWF_HIPRI);
            if (got <= 0)
                break;
            done += got;
        }
        note("preadv2: %zu", done);
    } else if (way == 2) {
        size_t done = 0;
        while (done < PIECE) {
            struct aiocb block = {.aio_fildes = fd, .aio_buf = bytes + done, .aio_nbytes = PIECE - done};
            const struct aiocb *list[] = {&block};
            if (aio_read(&block) < 0 || aio_suspend(list, 1, NULL) < 0)
                break;
            ssize_t got = aio_return(&block);
            if (got <= 0)
                break;
            done += got;
        }
        note("aio_read: %zu", done);
    } else {
        standard = dup(0);
        dup2(fd, 0);
        note("the standard input: %zu", fread(bytes, 1, PIECE, stdin));
        dup2(standard, 0);
        close(standard);
    }
    note("%zu right", right(bytes, position, PIECE));
}

/* Each way has a connection of its own, since a stream that has gone over stays there. */
static void server(int fd) {
    int port, listener = listen_somewhere(AF_INET, &port);
    send(fd, &port, sizeof port, 0);
    for (int way = 0; way < WAYS; way++) {
        int other = accept_one(listener);
        warm(other);
        await_bytes(other, PIECE);
        read_all(other, way);
        send_pattern(other, 7, 1);
        receive_pattern(other, 0, 50000);
        close(other);
    }
}

static void client(int fd) {
    int port;
    if (recv(fd, &port, sizeof port, MSG_WAITALL) != sizeof port)
        die("port");
    for (int way = 0; way < WAYS; way++) {
        int other = dial(AF_INET, port);
        warm(other);
        send_pattern(other, (size_t)way * PIECE, PIECE);
        receive_pattern(other, 7, 1);
        send_pattern(other, 0, 50000);
        shutdown(other, SHUT_WR);
        char byte;
        recv(other, &byte, 1, 0);
        close(other);
    }
}
