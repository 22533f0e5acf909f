// The load over gRPC: ./grpc serve ADDRESS, ./grpc ask ADDRESS MILLISECONDS. A message that is answered is a call; messages one way
// are those of one client stream.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <grpcpp/grpcpp.h>

#include "echo.grpc.pb.h"

using echo::Echo;
using echo::Text;

class Service final : public Echo::Service {
    grpc::Status Unary(grpc::ServerContext *, const Text *request, Text *answer) override {
        answer->set_bytes(request->bytes());
        return grpc::Status::OK;
    }
    grpc::Status Upload(grpc::ServerContext *, grpc::ServerReader<Text> *in, Text *) override {
        Text text;
        while (in->Read(&text)) {
        }
        return grpc::Status::OK;
    }
};

static double now() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void check(const grpc::Status &status) {
    if (!status.ok()) {
        fprintf(stderr, "%s\n", status.error_message().c_str());
        exit(1);
    }
}

static double turn(Echo::Stub &stub, long count, size_t size, bool answered) {
    Text text, answer;
    text.set_bytes(std::string(size, 7));
    double begin = now();
    if (answered) {
        for (long done = 0; done < count; done++) {
            grpc::ClientContext context;
            check(stub.Unary(&context, text, &answer));
        }
    } else {
        grpc::ClientContext context;
        auto out = stub.Upload(&context, &answer);
        for (long done = 0; done < count; done++) out->Write(text);
        out->WritesDone();
        check(out->Finish());
    }
    return now() - begin;
}

static double per_message(Echo::Stub &stub, size_t size, bool answered, double wanted) {
    long count = 4;
    double time = turn(stub, count, size, answered);
    while (time < wanted / 4) time = turn(stub, count *= 2, size, answered);
    count = static_cast<long>(count * wanted / time) + 1;
    return turn(stub, count, size, answered) / count;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (!strcmp(argv[1], "serve")) {
        Service service;
        grpc::ServerBuilder builder;
        builder.AddListeningPort(argv[2], grpc::InsecureServerCredentials());
        builder.SetMaxReceiveMessageSize(-1);
        builder.RegisterService(&service);
        builder.BuildAndStart()->Wait();
        return 0;
    }
    double wanted = (argc > 3 ? atof(argv[3]) : 100) * 1e6;
    auto stub = Echo::NewStub(grpc::CreateChannel(argv[2], grpc::InsecureChannelCredentials()));
    printf("latency_ns %.1f\n", per_message(*stub, 64, true, wanted) / 2);
    printf("rate %.0f\n", 1e9 / per_message(*stub, 64, false, wanted));
    printf("bandwidth_64k %.0f\n", 65536e9 / per_message(*stub, 65536, false, wanted));
    printf("bandwidth_1m %.0f\n", 1048576e9 / per_message(*stub, 1048576, false, wanted));
    return 0;
}
