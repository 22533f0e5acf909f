/* A child goes on writing while its parent, one of whose threads waits for an answer, sends anew what the reader wants over TCP:
 * the child's bytes come behind these. */
#include "behaviour.h"

enum { ROUNDS = 24, FIRST = 100000, SECOND = 60000, ALL = FIRST + SECOND };

static void server(int fd) {
    static unsigned char bytes[ALL];
    for (int round = 0; round < ROUNDS; round++) {
        size_t from = (size_t)round * ALL;
        warm(fd);
        meet();
        FILE *stream = fdopen(dup(fd), "r");
        size_t got = fread(bytes, 1, ALL, stream), good = right(bytes, from, got);
        if (good != ALL)
            note("round %d: %zu, %zu right", round, got, good);
        fclose(stream);
        DO(send(fd, "answer", 6, 0));
    }
    meet();
    DO(close(fd));
}

static void *await_answer(void *fd) {
    static char answer[6];
    for (ssize_t done = 0, got; done < 6; done += got > 0 ? got : 0)
        if ((got = recv(*(int *)fd, answer + done, 6 - done, 0)) <= 0 && errno != EINTR)
            return "nothing";
    return answer;
}

static void client(int fd) {
    for (int round = 0; round < ROUNDS; round++) {
        size_t from = (size_t)round * ALL;
        void *answer;
        pthread_t waits;
        warm(fd);
        send_pattern(fd, from, FIRST);
        if (pthread_create(&waits, NULL, await_answer, &fd) != 0)
            die("pthread_create");
        pid_t child = fork();
        if (child == 0) {
            /* When the reader wants the bytes, or a little before or later. */
            meet();
            for (int64_t until = now_us() + round % 12 * 40; now_us() < until;)
                ;
            send_pattern(fd, from + FIRST, SECOND);
            _exit(0);
        }
        note_end("the child", child);
        pthread_join(waits, &answer);
        note("%.6s", (char *)answer);
    }
    char byte;
    meet();
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
