/* Every number below the limit can be the target of dup2 and dup3, while a connection is in use; the connection goes on. */
#define _GNU_SOURCE
#include "behaviour.h"
#include <sys/resource.h>

static void put_everywhere(int fd) {
    struct rlimit limit;
    int refused = 0, wrong = 0, three;
    getrlimit(RLIMIT_NOFILE, &limit);
    int null = open("/dev/null", O_WRONLY);
    for (int number = 200; number < (int)limit.rlim_cur; number++) {
        three = number % 2;
        int made = three ? dup3(null, number, O_CLOEXEC) : dup2(null, number);
        refused += made < 0;
        wrong += made >= 0 && made != number;
        if (made >= 0)
            wrong += write(number, "x", 1) != 1;
    }
    note("refused %d, wrong %d", refused, wrong);
    DO(dup2(null, limit.rlim_cur));
    meet();
    warm(fd);
    meet();
    int lost = 0;
    for (int number = 200; number < (int)limit.rlim_cur; number++)
        lost += close(number) < 0;
    note("lost %d", lost);
    close(null);
}

static void both(int fd) {
    warm(fd);
    for (int round = 0; round < 2; round++) {
        /* In one process the numbers are both ends' own. */
        if (me == &server_side)
            put_everywhere(fd);
        else
            meet(), warm(fd), meet();
        meet();
        if (me == &server_side)
            meet(), warm(fd), meet();
        else
            put_everywhere(fd);
        meet();
        warm(fd);
    }
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
