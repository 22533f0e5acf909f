/* A program with an allocator of its own, which reads a file the first time it is asked. */
#include "tell.h"
#include "pair.h"
#include <fcntl.h>

static char heap[64 << 20] __attribute__((aligned(16)));
static size_t used;
static int read_first = -1;

void *malloc(size_t size) {
    if (read_first < 0) {
        char bytes[16];
        read_first = 0;
        int fd = open("/proc/self/stat", O_RDONLY);
        read_first = read(fd, bytes, sizeof bytes) > 0;
        close(fd);
    }
    size_t at = __atomic_fetch_add(&used, (size + 31) & ~15ul, __ATOMIC_RELAXED);
    if (at + size + 16 > sizeof heap)
        return NULL;
    *(size_t *)(heap + at) = size;
    return heap + at + 16;
}

void free(void *pointer) {
    (void)pointer;
}

void *calloc(size_t count, size_t size) {
    return malloc(count * size);
}

void *realloc(void *old, size_t size) {
    void *new = malloc(size);
    if (old && new)
        memcpy(new, old, ((size_t *)old)[-2] < size ? ((size_t *)old)[-2] : size);
    return new;
}

void *aligned_alloc(size_t alignment, size_t size) {
    size_t raw = (size_t)malloc(size + alignment + 16);
    size_t at = (raw + alignment + 15) & ~(alignment - 1);
    ((size_t *)at)[-2] = size;
    return (void *)at;
}

int posix_memalign(void **place, size_t alignment, size_t size) {
    *place = aligned_alloc(alignment, size);
    return 0;
}

int main(void) {
    int ends[2];
    char byte = 'd';
    tcp_pair(ends);
    warm_up(ends);
    TELL(send(ends[0], &byte, 1, 0));
    TELL(recv(ends[1], &byte, 1, 0));
    printf("read first %d\n", read_first);
    return 0;
}
