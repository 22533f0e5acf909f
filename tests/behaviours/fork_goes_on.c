/* A parent sends anew what the reader wants over TCP; then its child goes on with the connection, alone: both ends know how many
 * bytes have come over which path. */
#include "behaviour.h"

enum { FIRST = 100000, SECOND = 50000, WARMS = 30 };

/* A program reads from the connection, and its words are the bytes. */
static pid_t start_head(int fd, int *words) {
    int ends[2];
    char count[16];
    snprintf(count, sizeof count, "%d", FIRST);
    if (pipe2(ends, O_CLOEXEC) < 0)
        die("pipe2");
    int out = fcntl(ends[1], F_DUPFD_CLOEXEC, 20);
    close(ends[1]);
    pid_t child = fork();
    if (child == 0) {
        dup2(fd, 0), dup2(out, 1);
        execlp("head", "head", "-c", count, NULL);
        _exit(127);
    }
    close(out);
    *words = ends[0];
    return child;
}

static void server(int fd) {
    static unsigned char bytes[FIRST + 1];
    size_t done = 0;
    int words;
    char byte;
    warm(fd);
    meet();
    pid_t child = start_head(fd, &words);
    for (ssize_t got; done < sizeof bytes && (got = read(words, bytes + done, sizeof bytes - done)) != 0;)
        done += got > 0 ? got : 0;
    close(words);
    note("%zu, %zu right", done, right(bytes, 0, done));
    note_end("the program", child);
    meet();
    for (int i = 0; i < WARMS; i++)
        warm(fd);
    receive_pattern(fd, 0, SECOND);
    send_pattern(fd, 0, SECOND);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}

static void client(int fd) {
    int told[2], go[2];
    char byte;
    warm(fd);
    /* The other end has its number by now: a shell takes those below ten alone. */
    if (pipe2(told, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(go, O_CLOEXEC) < 0)
        die("pipe2");
    send_pattern(fd, 0, FIRST);
    pid_t child = fork();
    if (child == 0) {
        if (read(go[0], &byte, 1) != 1)
            _exit(4);
        meet();
        for (int i = 0; i < WARMS; i++) {
            warm(fd);
            pause_ms(2);
            if (write(told[1], "x", 1) != 1)
                _exit(2);
        }
        send_pattern(fd, 0, SECOND);
        expect_pattern(fd, 0, SECOND, 3);
        _exit(0);
    }
    meet();
    if (write(go[1], "x", 1) != 1)
        die("write");
    /* Waits, so that it follows a reader that wants something, until the child has used the connection. */
    for (struct pollfd entry = {fd, POLLPRI, 0}; read(told[0], &byte, 1) != 1;)
        poll(&entry, 1, 5);
    DO(close(fd));
    note_end("the child", child);
}
