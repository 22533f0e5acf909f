/* fork and exec, vfork and exec, posix_spawn, system and popen right behind bytes that have come and were not read: the new
 * program reads them from the connection, while its parent keeps it. */
#include "behaviour.h"
#include <spawn.h>

extern char **environ;
enum { WAYS = 5, PIECE = 30000 };

static void server(int fd) {
    char command[80];
    snprintf(command, sizeof command, "head -c %d <&%d | cksum >&2", PIECE, fd);
    warm(fd);
    int out[2];
    if (pipe(out) < 0)
        die("pipe");
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    int error = dup(2);
    fcntl(error, F_SETFD, FD_CLOEXEC);
    for (int way = 0; way < WAYS; way++) {
        char *arguments[] = {"sh", "-c", command, NULL}, line[80] = "";
        pid_t child = -1;
        if (way % 2)
            await_bytes(fd, 1);
        dup2(out[1], 2);
        switch (way) {
        case 0:
            child = fork();
            if (child == 0) {
                execv("/bin/sh", arguments);
                _exit(127);
            }
            break;
        case 1:
            child = vfork();
            if (child == 0) {
                execv("/bin/sh", arguments);
                _exit(127);
            }
            break;
        case 2:
            posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
            break;
        case 3:
            outcome("system", system(command));
            break;
        case 4: {
            FILE *words = popen(command, "r");
            outcome("popen", pclose(words));
        }
        }
        dup2(error, 2);
        ssize_t got = read(out[0], line, sizeof line - 1);
        note("way %d: %.*s", way, (int)(got > 0 ? got - 1 : 0), line);
        if (child > 0)
            note_end("a program", child);
        send_pattern(fd, (size_t)way, 1);
    }
    receive_pattern(fd, WAYS * PIECE, 50000);
    send_pattern(fd, 0, 50000);
    DO(close(fd));
}

static void client(int fd) {
    char byte;
    warm(fd);
    for (int way = 0; way < WAYS; way++) {
        send_pattern(fd, (size_t)way * PIECE, PIECE);
        receive_pattern(fd, (size_t)way, 1);
    }
    send_pattern(fd, WAYS * PIECE, 50000);
    receive_pattern(fd, 0, 50000);
    DO(recv(fd, &byte, 1, 0));
    DO(close(fd));
}
