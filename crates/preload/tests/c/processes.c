/* fork, vfork, posix_spawn, exec in all forms: children run, and the parent's connection goes on. */
#include "tell.h"
#include "pair.h"
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static int ends[2];

static void check(const char *what) {
    char byte = 'a';
    long sent = send(ends[0], &byte, 1, 0), got = recv(ends[1], &byte, 1, 0);
    printf("after %s: %ld %ld %c\n", what, sent, got, byte);
    fflush(stdout);
}

static void ended(const char *what, pid_t pid) {
    int status = -1;
    pid_t who = waitpid(pid, &status, 0);
    printf("%s: own %d status %x\n", what, who == pid && pid > 0, status);
    check(what);
}

static int cloned(void *argument) {
    return *(int *)argument;
}

static __attribute__((noinline)) pid_t by_vfork(int code) {
    volatile int marker = code * 3;
    pid_t pid = vfork();
    if (pid == 0) {
        close(ends[0]);
        dup2(1, 2);
        signal(SIGINT, SIG_DFL);
        if (code == 0)
            execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
        _exit(code);
    }
    if (marker != code * 3)
        abort();
    return pid;
}

int main(void) {
    char *arguments[] = {"sh", "-c", "exit 5", NULL};
    static char stack[65536] __attribute__((aligned(16)));
    int code = 6;
    tcp_pair(ends);
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    warm_up(ends);
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    ended("fork", pid);
    pid = _Fork();
    if (pid == 0)
        _exit(4);
    ended("_Fork", pid);
    pid = syscall(SYS_fork);
    if (pid == 0)
        _exit(4);
    ended("SYS_fork", pid);
    pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(4);
    ended("SYS_clone", pid);
    struct clone_args wanted = {.exit_signal = SIGCHLD};
    pid = syscall(SYS_clone3, &wanted, sizeof wanted);
    if (pid == 0)
        _exit(4);
    ended("SYS_clone3", pid);
    ended("vfork", by_vfork(7));
    ended("vfork and execl", by_vfork(0));
    ended("clone", clone(cloned, stack + sizeof stack, SIGCHLD, &code));
    ended("clone like vfork", clone(cloned, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &code));
    TELL(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ));
    ended("posix_spawn", pid);
    TELL(posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ));
    ended("posix_spawnp", pid);
    TELL(posix_spawn(&pid, "/nowhere/at/all", NULL, NULL, arguments, environ));
    for (int kind = 0; kind < 8; kind++) {
        pid = fork();
        if (pid == 0) {
            char *own[] = {"WORD=exit 8", NULL};
            switch (kind) {
            case 0: execve("/bin/sh", arguments, environ); break;
            case 1: execv("/bin/sh", arguments); break;
            case 2: execvp("sh", arguments); break;
            case 3: execvpe("sh", arguments, own); break;
            case 4: execl("/bin/sh", "a", "-c", "exit $#", "b", "c", "d", "e", "f", "g", "h", (char *)NULL); break;
            case 5: execlp("sh", "a", "-c", "exit $#", "b", "c", "d", "e", "f", "g", (char *)NULL); break;
            case 6: execle("/bin/sh", "a", "-c", "eval $WORD", (char *)NULL, own); break;
            case 7: fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC), arguments, environ); break;
            }
            _exit(99);
        }
        char name[20];
        snprintf(name, sizeof name, "exec %d", kind);
        ended(name, pid);
    }
    TELL(execl("/nowhere/at/all", "x", (char *)NULL));
    check("failed exec");
    TELL(system("exit 2"));
    FILE *pipe = popen("echo from popen", "r");
    char line[40] = "";
    if (fgets(line, sizeof line, pipe))
        printf("%s", line);
    TELL(pclose(pipe));
    check("popen");
    return 0;
}
