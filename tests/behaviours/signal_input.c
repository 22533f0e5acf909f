/* SIGIO for a connection: every arrival makes a signal while it is asked for, and reads and writes go on as before and after. */
#include "behaviour.h"

enum { ROUNDS = 3 };
static volatile sig_atomic_t signals;

static void on_input(int number) {
    (void)number;
    signals++;
}

static void server(int fd) {
    char bytes[10];
    struct sigaction action = {.sa_handler = on_input, .sa_flags = SA_RESTART};
    sigaction(SIGIO, &action, NULL);
    warm(fd);
    DO(fcntl(fd, F_SETOWN, getpid()));
    DO(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
    for (int round = 0; round < ROUNDS; round++) {
        int before = signals;
        meet();
        for (int64_t end = now_us() + PATIENCE_MS * 1000ll; signals == before && now_us() < end;)
            pause_ms(1);
        note("a signal: %d", signals > before);
        await_bytes(fd, 5);
        DO(recv(fd, bytes, sizeof bytes, 0));
        DO(recv(fd, bytes, sizeof bytes, 0));
        DO(send(fd, "k", 1, 0));
    }
    DO(fcntl(fd, F_SETFL, 0));
    meet();
    receive_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        DO(send(fd, "bytes", 5, 0));
        DO(recv(fd, &byte, 1, 0));
    }
    meet();
    send_pattern(fd, 0, 100000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
