/* Both ends write a MiB before either reads: buffers must hold it, as TCP's do. */
#include "behaviour.h"

static void both(int fd) {
    warm(fd);
    for (size_t round = 0; round < 3; round++) {
        send_pattern(fd, round << 20, 1 << 20);
        meet();
        receive_pattern(fd, round << 20, 1 << 20);
        meet();
    }
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
