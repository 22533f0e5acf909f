/* As stdio_unread, while the other end does something else and cannot send anything anew. */
#include "behaviour.h"
#include <aio.h>

enum { PIECE = 3000 };

static volatile int told, code, value;

static void handler(int number UNUSED, siginfo_t *info, void *context UNUSED) {
    code = info->si_code, value = info->si_value.sival_int;
    __atomic_add_fetch(&told, 1, __ATOMIC_RELEASE);
}

/* Two reads by libc itself: one tells of its end by a signal, the other is waited for. */
static void read_asynchronously(int fd, unsigned char *bytes) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    struct aiocb first = {.aio_fildes = fd, .aio_buf = bytes, .aio_nbytes = 300};
    first.aio_sigevent = (struct sigevent){.sigev_signo = SIGUSR1, .sigev_value.sival_int = 77};
    DO(aio_read(&first));
    for (int turn = 0; !__atomic_load_n(&told, __ATOMIC_ACQUIRE) && turn < 20000; turn++)
        pause_ms(1);
    note("told %d times, by libc: %d, with %d", told, code == SI_ASYNCIO, value);
    note("%d, %zd of the same socket: %d", aio_error(&first), aio_return(&first), first.aio_fildes == fd);
    struct aiocb second = {.aio_fildes = fd, .aio_buf = bytes + 300, .aio_nbytes = 200, .aio_lio_opcode = LIO_READ};
    second.aio_sigevent.sigev_notify = SIGEV_NONE;
    struct aiocb *list[] = {&second};
    DO(lio_listio(LIO_WAIT, list, 1, NULL));
    note("%zd of the same socket: %d", aio_return(&second), second.aio_fildes == fd);
}

static void server(int fd) {
    static unsigned char bytes[PIECE];
    char byte;
    warm(fd);
    meet();
    await_bytes(fd, PIECE);
    struct iovec part = {bytes, 1000};
    DO(preadv2(fd, &part, 1, -1, RWF_HIPRI));
    note("%zu right", right(bytes, 0, 1000));
    read_asynchronously(fd, bytes + 1000);
    FILE *stream = fdopen(dup(fd), "r"), *other = fdopen(dup(fd), "w");
    note("stdio: %zu", fread(bytes + 1500, 1, PIECE - 1500, stream));
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
