/* sendfile: from an offset, from the file's position, beyond its end, and when the socket is full. */
#include "behaviour.h"

static int make_file(size_t length) {
    int file = memfd_create("behaviour", 0);
    unsigned char *bytes = malloc(length);
    fill(bytes, 0, length);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length)
        die("file");
    free(bytes);
    return file;
}

static void server(int fd) {
    int file = make_file(2000000);
    off_t offset = 1000;
    warm(fd);
    DO(lseek(file, 500, SEEK_SET));
    DO(sendfile(fd, file, &offset, 100000));
    DO(offset);
    DO(lseek(file, 0, SEEK_CUR));
    DO(sendfile(fd, file, NULL, 1500));
    DO(lseek(file, 0, SEEK_CUR));
    offset = 1999990;
    DO(sendfile(fd, file, &offset, 100));
    DO(offset);
    DO(sendfile(fd, file, &offset, 100));
    DO(sendfile(fd, file, &offset, 0));
    set_nonblocking(fd, 1);
    off_t done = 0;
    for (int rounds = 0; done < 2000000;) {
        ssize_t sent = sendfile(fd, file, &done, 2000000 - done);
        if (sent < 0 && errno == EAGAIN)
            await_events(fd, POLLOUT);
        else if (sent < 0 || ++rounds > 100000)
            die("sendfile");
    }
    DO(done);
    offset = 0;
    DO(sendfile(fd, 99, &offset, 10));
    offset = -5;
    DO(sendfile(fd, file, &offset, 10));
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    receive_pattern(fd, 1000, 100000);
    receive_pattern(fd, 500, 1500);
    receive_pattern(fd, 1999990, 10);
    receive_pattern(fd, 0, 2000000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
