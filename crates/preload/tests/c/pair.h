/* A TCP connection within the program. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static inline void tcp_pair(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        abort();
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (struct sockaddr *)&address, len))
        abort();
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
}

/* Two exchanges: from then on a connection may be promoted. */
static inline void warm_up(int ends[2]) {
    char byte = 0;
    for (int i = 0; i < 8; i++)
        for (int end = 0; end < 2; end++)
            if (send(ends[end], &byte, 1, 0) != 1 || recv(ends[!end], &byte, 1, 0) != 1)
                abort();
}
