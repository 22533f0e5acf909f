/* A small allocator to be linked into a program instead of that of libc. It has one lock, which a fork takes too, and ends the
 * program when it is entered again by a thread that is in it: by a signal handler, or from within a handler of fork. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Before every block; blocks are of 2^class bytes with it, and larger ones are mappings of their own. */
struct header {
    size_t mapped;
    uint32_t class;
    uint32_t offset;
};

enum { SMALLEST = 5, LARGEST = 16, CHUNK = 1 << 20 };

static struct free_block {
    struct free_block *next;
} *lists[LARGEST + 1];
static char *chunk, *chunk_end;
static char *lock_owner;
static __thread char self;

static void lock(void) {
    if (__atomic_load_n(&lock_owner, __ATOMIC_RELAXED) == &self) {
        static const char text[] = "the allocator was entered again by the same thread\n";
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
            _exit(3);
        abort();
    }
    for (char *nobody = NULL; !__atomic_compare_exchange_n(&lock_owner, &nobody, &self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
         nobody = NULL)
        sched_yield();
}

static void unlock(void) { __atomic_store_n(&lock_owner, NULL, __ATOMIC_RELEASE); }

static void *pages(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void *malloc(size_t bytes) {
    if (bytes > PTRDIFF_MAX - 65536) {
        errno = ENOMEM;
        return NULL;
    }
    size_t whole = bytes + sizeof(struct header);
    struct header *header = NULL;
    if (whole > 1 << LARGEST) {
        whole = (whole + 4095) & ~(size_t)4095;
        header = pages(whole);
        if (header)
            *header = (struct header){whole, 0, 0};
    } else {
        uint32_t class = SMALLEST;
        while ((size_t)1 << class < whole)
            class++;
        lock();
        if (lists[class]) {
            header = (struct header *)lists[class];
            lists[class] = lists[class]->next;
        } else {
            if (chunk_end - chunk < 1 << class) {
                chunk = pages(CHUNK);
                chunk_end = chunk ? chunk + CHUNK : NULL;
            }
            if (chunk) {
                header = (struct header *)chunk;
                chunk += 1 << class;
            }
        }
        unlock();
        if (header)
            *header = (struct header){0, class, 0};
    }
    if (!header) {
        errno = ENOMEM;
        return NULL;
    }
    return header + 1;
}

/* The header of the block, also of one that was aligned within it. */
static struct header *header_of(void *at) {
    struct header *header = (struct header *)at - 1;
    return (struct header *)((char *)header - header->offset);
}

static size_t room(void *at) {
    struct header *header = header_of(at);
    char *end = (char *)header + (header->mapped ? header->mapped : (size_t)1 << header->class);
    return (size_t)(end - (char *)at);
}

void free(void *at) {
    if (!at)
        return;
    struct header *header = header_of(at);
    int error = errno;
    if (header->mapped) {
        munmap(header, header->mapped);
    } else {
        uint32_t class = header->class;
        struct free_block *block = (struct free_block *)header;
        lock();
        block->next = lists[class];
        lists[class] = block;
        unlock();
    }
    errno = error;
}

void *calloc(size_t count, size_t bytes) {
    size_t whole;
    if (__builtin_mul_overflow(count, bytes, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    void *at = malloc(whole);
    /* Written through a volatile pointer: or the compiler makes it a call of calloc. */
    for (volatile char *byte = at; at && (size_t)(byte - (char *)at) < whole; byte++)
        *byte = 0;
    return at;
}

void *realloc(void *at, size_t bytes) {
    if (!at)
        return malloc(bytes);
    if (bytes <= room(at))
        return at;
    void *larger = malloc(bytes);
    if (larger) {
        memcpy(larger, at, room(at));
        free(at);
    }
    return larger;
}

void *memalign(size_t alignment, size_t bytes) {
    char *at = malloc(bytes + alignment + sizeof(struct header));
    if (!at || ((uintptr_t)at & (alignment - 1)) == 0)
        return at;
    char *aligned = (char *)(((uintptr_t)at + sizeof(struct header) + alignment - 1) & ~(uintptr_t)(alignment - 1));
    ((struct header *)aligned - 1)->offset = (uint32_t)(aligned - at);
    return aligned;
}

int posix_memalign(void **into, size_t alignment, size_t bytes) {
    void *at = memalign(alignment, bytes);
    if (!at)
        return ENOMEM;
    *into = at;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

size_t malloc_usable_size(void *at) { return at ? room(at) : 0; }

__attribute__((constructor)) static void at_fork(void) { pthread_atfork(lock, unlock, unlock); }
