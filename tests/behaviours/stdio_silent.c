/* As stdio_unread, while the other end does something else and cannot send anything anew. */
#include "behaviour.h"

enum { PIECE = 3000 };

static void server(int fd) {
    static unsigned char bytes[PIECE];
    char byte;
    warm(fd);
    meet();
    await_bytes(fd, PIECE);
    struct iovec part = {bytes, 1000};
    DO(preadv2(fd, &part, 1, -1, RWF_HIPRI));
    note("%zu right", right(bytes, 0, 1000));
    FILE *stream = fdopen(dup(fd), "r"), *other = fdopen(dup(fd), "w");
    note("stdio: %zu", fread(bytes + 1000, 1, PIECE - 1000, stream));
    note("%zu right", right(bytes, 0, PIECE));
    fputs("answer", other);
    fclose(stream);
    fclose(other);
    meet();
    receive_pattern(fd, PIECE, 50000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    char answer[6];
    warm(fd);
    send_pattern(fd, 0, PIECE);
    meet();
    meet();
    DO(recv(fd, answer, 6, MSG_WAITALL));
    send_pattern(fd, PIECE, 50000);
    DO(close(fd));
}
