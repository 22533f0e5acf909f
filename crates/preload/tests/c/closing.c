/* Loops that close everything, dup in all forms, and the lowest free number. */
#include "tell.h"
#include "pair.h"
#include <fcntl.h>
#include <sys/epoll.h>

static void check(int *ends) {
    char byte = 'b';
    long sent = send(ends[0], &byte, 1, MSG_NOSIGNAL), got = recv(ends[1], &byte, 1, 0);
    printf("goes on: %ld %ld\n", sent, got);
}

int main(void) {
    int ends[2], more[2];
    tcp_pair(ends);
    warm_up(ends);
    TELL(dup(ends[0]));
    TELL(fcntl(ends[1], F_DUPFD, 50));
    TELL(fcntl(ends[1], F_DUPFD_CLOEXEC, 50));
    TELL(dup2(ends[0], 60));
    TELL(dup3(ends[1], 61, O_CLOEXEC));
    TELL(dup2(ends[0], 61));
    TELL(close(ends[0]));
    TELL(open("/dev/null", O_RDONLY));
    more[0] = 60, more[1] = 50;
    check(more);
    TELL(close_range(3, 49, 0));
    check(more);
    for (int fd = 51; fd < 1024; fd++)
        if (fd != 60)
            close(fd);
    check(more);
    TELL(epoll_create1(0));
    TELL(dup(60));
    TELL(close_range(3, 40, CLOSE_RANGE_CLOEXEC));
    TELL(fcntl(3, F_GETFD));
    TELL(close_range(9, 3, 0));
    TELL(fcntl(50, F_SETFD, 0));
    closefrom(61);
    check(more);
    closefrom(3);
    TELL(fcntl(60, F_GETFD));
    tcp_pair(ends);
    printf("numbers %d %d\n", ends[0], ends[1]);
    warm_up(ends);
    check(ends);
    return 0;
}
