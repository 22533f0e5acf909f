/* The other end has sent all it has to, and said so, before this one forks, or lets libc read: nothing can be sent anew. */
#include "behaviour.h"

enum { PIECES = 5, PIECE = 20000, WAYS = 4 };

/* How many bytes are right, from the first, up to the end of the stream. */
static size_t takes_all(int fd) {
    static unsigned char bytes[PIECES * PIECE + 1];
    size_t done = 0;
    for (ssize_t got; done < sizeof bytes && (got = recv(fd, bytes + done, sizeof bytes - done, 0)) > 0;)
        done += got;
    return right(bytes, 0, done);
}

static void server_of(int fd, int way) {
    static unsigned char bytes[PIECES * PIECE + 1];
    warm(fd);
    meet();
    await_bytes(fd, PIECES * PIECE);
    if (way < 2) {
        pid_t child = fork();
        if (child == 0)
            _exit(way == 1 && takes_all(fd) != PIECES * PIECE);
        note_end("the child", child);
        if (way == 0)
            note("%zu right", takes_all(fd));
    } else if (way == 2) {
        FILE *stream = fdopen(dup(fd), "r");
        size_t got = fread(bytes, 1, sizeof bytes, stream);
        note("stdio: %zu, %zu right", got, right(bytes, 0, got));
        fclose(stream);
    } else {
        pid_t child = fork();
        if (child == 0) {
            dup2(fd, 0);
            execl("/bin/sh", "sh", "-c", "test $(wc -c) = 100000", NULL);
            _exit(9);
        }
        note_end("the program", child);
    }
    DO(send(fd, "answer", 6, 0));
    meet();
    DO(close(fd));
}

static void client_of(int fd) {
    static unsigned char bytes[PIECE];
    char answer[6];
    warm(fd);
    for (size_t i = 0; i < PIECES; i++) {
        fill(bytes, i * PIECE, PIECE);
        if (send(fd, bytes, PIECE, 0) != PIECE)
            die("send");
    }
    DO(shutdown(fd, SHUT_WR));
    meet();
    DO(recv(fd, answer, 6, MSG_WAITALL));
    meet();
    DO(close(fd));
}

/* A connection for each way; the first one tells where. */
static void server(int fd) {
    for (int way = 0; way < WAYS; way++) {
        int port, listener = listen_somewhere(AF_INET, &port);
        if (send(fd, &port, sizeof port, 0) != sizeof port)
            die("send");
        int next = accept_one(listener);
        close(listener);
        server_of(next, way);
    }
    DO(close(fd));
}

static void client(int fd) {
    for (int way = 0, port; way < WAYS; way++) {
        if (recv(fd, &port, sizeof port, MSG_WAITALL) != sizeof port)
            die("receive");
        client_of(dial(AF_INET, port));
    }
    DO(close(fd));
}
