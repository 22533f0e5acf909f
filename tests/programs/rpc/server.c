/* The ONC RPC server: server PORT|PATH. It registers with nobody, so that no rpcbind is needed. */
#include "echo.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Made by rpcgen. */
void echo_program_1(struct svc_req *request, SVCXPRT *transport);

payload *say_1_svc(payload *argument, struct svc_req *request) {
    (void)request;
    return argument;
}

void *take_1_svc(payload *argument, struct svc_req *request) {
    (void)request;
    return argument;
}

static int listener(const char *where) {
    if (*where == '/') {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        strncpy(address.sun_path, where, sizeof address.sun_path - 1);
        unlink(where);
        return bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -1 : fd;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    address.sin_port = htons(atoi(where));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -1 : fd;
}

int main(int argc, char **argv) {
    int fd = listener(argc > 1 ? argv[1] : "0");
    if (fd < 0 || listen(fd, 16) < 0) {
        perror("listen");
        return 1;
    }
    SVCXPRT *transport = svc_vc_create(fd, 0, 0);
    if (!transport || !svc_reg(transport, ECHO_PROGRAM, ECHO_VERSION, echo_program_1, NULL)) {
        fprintf(stderr, "no transport\n");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    svc_run();
    return 1;
}
