/* errno is kept when a call succeeds, and set as by the kernel when it fails. */
#include "tell.h"
#include "pair.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

int main(void) {
    char bytes[16] = "fifteen letters";
    int ends[2], pipes[2];
    struct iovec part = {bytes, 4};
    tcp_pair(ends);
    warm_up(ends);
    if (pipe(pipes))
        return 1;
    TELL(write(ends[0], bytes, 8));
    TELL(read(ends[1], bytes, 4));
    TELL(readv(ends[1], &part, 1));
    TELL(write(pipes[1], bytes, 8));
    TELL(read(pipes[0], bytes, 8));
    TELL(recv(ends[1], bytes, 8, MSG_DONTWAIT));
    TELL(recv(ends[1], bytes, 8, MSG_OOB));
    TELL(read(999, bytes, 8));
    TELL(write(-1, bytes, 8));
    TELL(read(pipes[1], bytes, 8));
    TELL(send(pipes[1], bytes, 8, 0));
    TELL(pread(ends[1], bytes, 8, 0));
    TELL(sendfile(ends[0], 999, NULL, 8));
    TELL(close(999));
    TELL(dup(999));
    TELL(dup2(999, ends[0]));
    TELL(dup2(ends[0], ends[0]));
    TELL(dup3(ends[0], ends[0], 0));
    TELL(fcntl(999, F_GETFL));
    TELL(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    TELL(recv(ends[0], bytes, 8, 0));
    int off = 0;
    TELL(ioctl(ends[0], FIONBIO, &off));
    TELL(ioctl(ends[0], FIONREAD, &off));
    TELL(shutdown(ends[0], 77));
    struct pollfd list[] = {{ends[0], POLLOUT, 0}, {pipes[0], POLLIN, 0}};
    TELL(poll(list, 2, 0));
    TELL(poll(list + 1, 1, 0));
    TELL(epoll_ctl(ends[0], EPOLL_CTL_ADD, ends[1], (struct epoll_event *)list));
    TELL(epoll_wait(999, (struct epoll_event *)list, 1, 0));
    int one = 1;
    TELL(setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    TELL(setsockopt(ends[0], IPPROTO_TCP, 9999, &one, sizeof one));
    TELL(close(ends[1]));
    TELL(close(ends[0]));
    TELL(close(ends[0]));
    return 0;
}
