// The load over ZeroMQ: ./zmq serve ENDPOINT, ./zmq ask ENDPOINT MILLISECONDS
#include <zmq.h>

#include "load.h"

static void *wire;

static void send_message(const void *bytes, size_t size) {
    if (zmq_send(wire, bytes, size, 0) != (int)size) refuse("zmq_send");
}

static void receive_message(void *bytes, size_t size) {
    if (zmq_recv(wire, bytes, size, 0) != (int)size) refuse("zmq_recv");
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    void *context = zmq_ctx_new();
    wire = zmq_socket(context, ZMQ_PAIR);
    if (!strcmp(argv[1], "serve")) {
        if (zmq_bind(wire, argv[2])) refuse("zmq_bind");
        serve();
    } else {
        if (zmq_connect(wire, argv[2])) refuse("zmq_connect");
        ask(argc > 3 ? strtoull(argv[3], NULL, 10) : 100);
    }
    zmq_close(wire);
    zmq_ctx_term(context);
    return 0;
}
