/* vfork with exec, posix_spawn, system and popen beside a connection. */
#include "behaviour.h"
#include <spawn.h>

extern char **environ;

static void server(int fd) {
    char *arguments[] = {"true", NULL}, line[32];
    pid_t child;
    warm(fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    child = vfork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(127);
    }
    note_end("vfork", child);
    receive_pattern(fd, 0, 100000);
    child = vfork();
    if (child == 0)
        _exit(9);
    note_end("vfork without exec", child);
    receive_pattern(fd, 100000, 100000);
    DO(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ));
    note_end("posix_spawn", child);
    receive_pattern(fd, 200000, 100000);
    DO(system("exit 3"));
    FILE *words = popen("echo words", "r");
    DO(fgets(line, sizeof line, words) != NULL);
    DO(pclose(words));
    receive_pattern(fd, 300000, 100000);
    send_pattern(fd, 0, 100000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    send_pattern(fd, 0, 400000);
    receive_pattern(fd, 0, 100000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
