/* sendfile: from an offset, from the file's position, beyond its end, and when the socket is full; from memory, and from a
 * file on a disk whether the kernel has it in memory or not. */
#include "behaviour.h"

/* So much is sent while nobody reads. */
enum { UNREAD = 700000 };

static void put_bytes(int file, size_t length) {
    unsigned char *bytes = malloc(length);
    fill(bytes, 0, length);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length)
        die("file");
    free(bytes);
}

/* Without waiting in the call. */
static void send_all(int fd, int file, off_t length) {
    off_t done = 0;
    for (int rounds = 0; done < length;) {
        ssize_t sent = sendfile(fd, file, &done, length - done);
        if (sent < 0 && errno == EAGAIN)
            await_events(fd, POLLOUT);
        else if (sent < 0 || ++rounds > 100000)
            die("sendfile");
    }
    DO(done);
}

static void server(int fd) {
    int file = memfd_create("behaviour", 0);
    put_bytes(file, 2000000);
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
    send_all(fd, file, UNREAD);
    meet();
    send_all(fd, file, 2000000);
    offset = 0;
    DO(sendfile(fd, 99, &offset, 10));
    offset = -5;
    DO(sendfile(fd, file, &offset, 10));
    offset = -1;
    DO(sendfile(fd, file, &offset, 100000));
    DO(offset);
    set_nonblocking(fd, 0);
    FILE *kept = tmpfile();
    int on_disk = fileno(kept);
    put_bytes(on_disk, 3000001);
    DO(lseek(on_disk, 1, SEEK_SET));
    DO(sendfile(fd, on_disk, NULL, 4000000));
    DO(lseek(on_disk, 0, SEEK_CUR));
    if (fsync(on_disk) || posix_fadvise(on_disk, 0, 0, POSIX_FADV_DONTNEED))
        die("fadvise");
    offset = 0;
    DO(sendfile(fd, on_disk, &offset, 3000001));
    DO(offset);
    fclose(kept);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    receive_pattern(fd, 1000, 100000);
    receive_pattern(fd, 500, 1500);
    receive_pattern(fd, 1999990, 10);
    meet();
    receive_pattern(fd, 0, UNREAD);
    receive_pattern(fd, 0, 2000000);
    receive_pattern(fd, 1, 3000000);
    receive_pattern(fd, 0, 3000001);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
