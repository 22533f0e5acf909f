/* Connects to itself, exchanges messages, and then runs the command that it was given, while the connection lasts. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int fine) {
    if (!fine)
        perror("told"), exit(1);
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), status;
    check(count > 1);
    check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    check(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    check(connect(client, (struct sockaddr *)&address, length) == 0);
    int server = accept(listener, NULL, NULL);
    check(server >= 0);
    char bytes[64] = {0};
    for (int i = 0; i < 100; i++) {
        check(send(client, bytes, 64, 0) == 64 && recv(server, bytes, 64, MSG_WAITALL) == 64);
        check(send(server, bytes, 64, 0) == 64 && recv(client, bytes, 64, MSG_WAITALL) == 64);
    }
    pid_t child = vfork();
    if (child == 0) {
        close(listener), close(client), close(server);
        execv(arguments[1], arguments + 1);
        _exit(127);
    }
    check(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
