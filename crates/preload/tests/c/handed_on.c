/* A connection that has been used is handed on: by SCM_RIGHTS, by fork and exec, by vfork, by posix_spawn. */
#include "tell.h"
#include "pair.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void finish(const char *what, int *ends, pid_t pid) {
    char bytes[20] = "";
    int status;
    close(ends[1]);
    long sent = write(ends[0], "line\n", 5);
    shutdown(ends[0], SHUT_WR);
    long got = recv(ends[0], bytes, 5, MSG_WAITALL);
    waitpid(pid, &status, 0);
    printf("%s: %ld %ld %.4s, status %x\n", what, sent, got, bytes, status);
    fflush(stdout);
    close(ends[0]);
}

int main(void) {
    char *cat[] = {"cat", NULL};
    int ends[2];
    pid_t pid;
    tcp_pair(ends);
    warm_up(ends);
    if ((pid = fork()) == 0) {
        close(ends[0]);
        dup2(ends[1], 0), dup2(ends[1], 1);
        execvp("cat", cat);
        _exit(99);
    }
    finish("fork", ends, pid);
    tcp_pair(ends);
    warm_up(ends);
    if ((pid = vfork()) == 0) {
        close(ends[0]);
        dup2(ends[1], 0), dup2(ends[1], 1);
        execvp("cat", cat);
        _exit(99);
    }
    finish("vfork", ends, pid);
    tcp_pair(ends);
    warm_up(ends);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC), fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    TELL(posix_spawnp(&pid, "cat", &actions, NULL, cat, environ));
    finish("posix_spawn", ends, pid);
    tcp_pair(ends);
    warm_up(ends);
    int unix_ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, unix_ends))
        return 1;
    if ((pid = fork()) == 0) {
        close(ends[0]), close(ends[1]);
        union {
            struct cmsghdr head;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        char byte;
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        if (recvmsg(unix_ends[1], &message, 0) != 1)
            _exit(98);
        int fd;
        memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
        char line[5];
        if (recv(fd, line, 5, MSG_WAITALL) != 5 || send(fd, line, 5, 0) != 5)
            _exit(97);
        _exit(0);
    }
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &ends[1], sizeof(int));
    struct iovec part = {"!", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    TELL(sendmsg(unix_ends[0], &message, 0));
    finish("SCM_RIGHTS", ends, pid);
    return 0;
}
