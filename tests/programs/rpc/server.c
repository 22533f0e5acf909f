/* The ONC RPC server: server PORT. It registers with nobody, so that no rpcbind is needed. */
#include "echo.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Made by rpcgen. */
void echo_program_1(struct svc_req *request, SVCXPRT *transport);

payload *say_1_svc(payload *argument, struct svc_req *request) {
    (void)request;
    return argument;
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    address.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 16) < 0) {
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
