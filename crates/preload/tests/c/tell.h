/* What the programs of this folder share: every step prints what it gave. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void tell_(const char *what, long value, int error) {
    if (value == -1)
        printf("%s: -1 %s\n", what, strerrorname_np(error) ? strerrorname_np(error) : "none");
    else
        printf("%s: %ld, errno %d\n", what, value, error);
    fflush(stdout);
}

/* Runs a call with errno at a value that no call sets. */
#define TELL(call)                                                                                                     \
    do {                                                                                                               \
        errno = 4242;                                                                                                  \
        long value_ = (long)(call);                                                                                    \
        tell_(#call, value_, errno);                                                                                   \
    } while (0)
