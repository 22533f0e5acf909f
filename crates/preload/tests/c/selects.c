/* select and pselect: bits, counts, time left, errors. */
#include "tell.h"
#include "pair.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>

static void show(const char *what, fd_set *set, int first, int count) {
    printf("%s:", what);
    for (int i = 0; i < count; i++)
        printf(" %d", FD_ISSET(first + i, set) != 0);
    printf("\n");
}

int main(void) {
    int ends[2], pipes[2];
    struct timeval none = {0, 0}, soon = {0, 1500000}, wrong = {-1, 0};
    struct timespec brief = {0, 20000000};
    fd_set reads, writes, special;
    tcp_pair(ends);
    warm_up(ends);
    if (pipe(pipes))
        return 1;
    int most = pipes[1] + 1;
#define ALL(set)                                                                                                       \
    do {                                                                                                               \
        FD_ZERO(&set);                                                                                                 \
        for (int fd = ends[0]; fd < most; fd++)                                                                        \
            if (fcntl(fd, F_GETFD) >= 0)                                                                               \
                FD_SET(fd, &set);                                                                                      \
    } while (0)
    ALL(reads);
    ALL(writes);
    ALL(special);
    TELL(select(most, &reads, &writes, &special, &none));
    show("reads", &reads, ends[0], most - ends[0]);
    show("writes", &writes, ends[0], most - ends[0]);
    show("special", &special, ends[0], most - ends[0]);
    TELL(write(ends[0], "x", 1));
    ALL(reads);
    TELL(select(most, &reads, NULL, NULL, &soon));
    show("reads", &reads, ends[0], most - ends[0]);
    printf("time left: %d\n", soon.tv_sec >= 1);
    char byte;
    TELL(read(ends[1], &byte, 1));
    ALL(reads);
    TELL(pselect(most, &reads, NULL, NULL, &brief, NULL));
    show("reads", &reads, ends[0], most - ends[0]);
    soon = (struct timeval){0, 20000};
    ALL(special);
    TELL(select(most, NULL, NULL, &special, &soon));
    printf("left: %ld %ld\n", (long)soon.tv_sec, (long)soon.tv_usec);
    ALL(reads);
    TELL(select(most, &reads, NULL, NULL, &wrong));
    TELL(select(-1, &reads, NULL, NULL, &none));
    FD_ZERO(&reads);
    FD_SET(ends[1], &reads);
    FD_SET(40, &reads);
    TELL(select(41, &reads, NULL, NULL, &none));
    FD_ZERO(&special);
    FD_SET(ends[1], &special);
    FD_ZERO(&writes);
    TELL(close(ends[0]));
    soon = (struct timeval){0, 20000};
    TELL(select(most, NULL, NULL, &special, &soon));
    FD_ZERO(&reads);
    FD_SET(ends[1], &reads);
    TELL(select(most, &reads, NULL, NULL, NULL));
    return 0;
}
