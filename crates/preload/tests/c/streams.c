/* stdio, dprintf and asynchronous reading on a connection that has been used by hand before. */
#include "tell.h"
#include "pair.h"
#include <aio.h>
#include <fcntl.h>
#include <stdarg.h>

static int print(int fd, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = vdprintf(fd, format, arguments);
    va_end(arguments);
    return count;
}

int main(void) {
    int ends[2];
    char bytes[100];
    tcp_pair(ends);
    warm_up(ends);
    TELL(dprintf(ends[0], "%d %s %.2f %.1f %c %ld %d %d %d\n", 1, "two", 3.25, 4.5, '5', 6L, 7, 8, 9));
    TELL(print(ends[0], "%s %.3f\n", "listed", 0.125));
    FILE *in = fdopen(ends[1], "r"), *out = fdopen(ends[0], "w");
    TELL(fgets(bytes, sizeof bytes, in) == bytes);
    printf("%s", bytes);
    TELL(fgets(bytes, sizeof bytes, in) == bytes);
    printf("%s", bytes);
    TELL(fprintf(out, "by stdio\n"));
    TELL(fclose(out));
    TELL(fgets(bytes, sizeof bytes, in) == bytes);
    printf("%s", bytes);
    TELL(fgets(bytes, sizeof bytes, in) == NULL);
    int again = open("/dev/null", O_RDWR);
    printf("the number is free again: %d\n", again == ends[0]);
    TELL(write(again, "x", 1));
    TELL(read(again, bytes, 1));
    TELL(fclose(in));
    tcp_pair(ends);
    warm_up(ends);
    struct aiocb block = {.aio_fildes = ends[1], .aio_buf = bytes, .aio_nbytes = 5};
    const struct aiocb *list[] = {&block};
    TELL(aio_read(&block));
    TELL(write(ends[0], "async", 5));
    TELL(aio_suspend(list, 1, NULL));
    TELL(aio_error(&block));
    TELL(aio_return(&block));
    printf("%.5s\n", bytes);
    return 0;
}
