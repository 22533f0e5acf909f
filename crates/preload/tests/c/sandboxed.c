/* A program takes most system calls from itself after it has used a connection; the connection goes on. */
#include "tell.h"
#include "pair.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define REFUSE(name)                                                                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static int shut_in(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(socket),
        REFUSE(connect),
        REFUSE(openat),
        REFUSE(memfd_create),
        REFUSE(eventfd2),
        REFUSE(pidfd_open),
        REFUSE(clone),
        REFUSE(execve),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int echoed(int fd, const char *text, size_t len) {
    char bytes[16];
    size_t got = 0;
    if (write(fd, text, len) != (ssize_t)len)
        return 0;
    while (got < len) {
        ssize_t more = read(fd, bytes + got, len - got);
        if (more <= 0)
            return 0;
        got += more;
    }
    return memcmp(bytes, text, len) == 0;
}

static void child(struct sockaddr_in *address) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)address, sizeof *address))
        _exit(10);
    for (int i = 0; i < 20; i++)
        if (!echoed(fd, "before", 6))
            _exit(9);
    if (shut_in())
        _exit(8);
    for (int i = 0; i < 20; i++)
        if (!echoed(fd, "inside", 6))
            _exit(7);
    _exit(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM ? 6 : 5);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    char bytes[64];
    int listener = socket(AF_INET, SOCK_STREAM, 0), status;
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        return 1;
    pid_t pid = fork();
    if (pid == 0)
        child(&address);
    int fd = accept(listener, NULL, NULL);
    ssize_t got, all = 0;
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
        all += got;
        if (write(fd, bytes, got) != got)
            return 1;
    }
    waitpid(pid, &status, 0);
    printf("echoed %zd, the end %zd, status %x\n", all, got, status);
    TELL(setuid(getuid()));
    TELL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    return 0;
}
