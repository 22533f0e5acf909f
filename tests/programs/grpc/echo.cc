// Calls of every kind over gRPC: echo serve PORT, echo call PORT SECONDS. The client prints what it computed from all answers
// of a fixed list of calls, which is the same in every run, and then goes on calling until its time is over.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "echo.grpc.pb.h"

using echo::Echo;
using echo::Order;
using echo::Text;
using grpc::Status;

static std::string pattern(int seed, size_t size) {
    std::string text(size, 0);
    for (size_t at = 0; at < size; at++)
        text[at] = static_cast<char>((seed * 31 + at) * 2654435761u >> 13);
    return text;
}

static uint64_t add(uint64_t sum, const std::string &bytes) {
    for (unsigned char byte : bytes)
        sum = (sum ^ byte) * 1099511628211u;
    return sum;
}

class Service final : public Echo::Service {
    Status Unary(grpc::ServerContext *, const Text *request, Text *answer) override {
        answer->set_bytes(std::string(request->bytes().rbegin(), request->bytes().rend()));
        return Status::OK;
    }
    Status Download(grpc::ServerContext *, const Order *order, grpc::ServerWriter<Text> *out) override {
        Text text;
        for (int number = 0; number < order->count(); number++) {
            text.set_bytes(pattern(number, order->size()));
            out->Write(text);
        }
        return Status::OK;
    }
    Status Upload(grpc::ServerContext *, grpc::ServerReader<Text> *in, Text *answer) override {
        Text text;
        uint64_t sum = 1;
        while (in->Read(&text))
            sum = add(sum, text.bytes());
        answer->set_bytes(std::to_string(sum));
        return Status::OK;
    }
    Status Talk(grpc::ServerContext *, grpc::ServerReaderWriter<Text, Text> *stream) override {
        Text text;
        while (stream->Read(&text))
            stream->Write(text);
        return Status::OK;
    }
};

static int serve(const std::string &address) {
    Service service;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    builder.BuildAndStart()->Wait();
    return 0;
}

static void check(const Status &status) {
    if (!status.ok()) {
        fprintf(stderr, "%s\n", status.error_message().c_str());
        exit(1);
    }
}

static int call(const std::string &address, double seconds) {
    auto stub = Echo::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    uint64_t sum = 1;
    Text request, answer;
    for (size_t size : {0, 1, 100, 5000, 70000, 1000000})
        for (int turn = 0; turn < 5; turn++) {
            grpc::ClientContext context;
            context.set_wait_for_ready(true);
            request.set_bytes(pattern(turn, size));
            check(stub->Unary(&context, request, &answer));
            sum = add(sum, answer.bytes());
        }
    for (auto [count, size] : {std::pair{100, 256}, {40, 65536}, {5, 1 << 20}}) {
        grpc::ClientContext context;
        Order order;
        order.set_count(count), order.set_size(size);
        auto in = stub->Download(&context, order);
        while (in->Read(&answer))
            sum = add(sum, answer.bytes());
        check(in->Finish());
    }
    {
        grpc::ClientContext context;
        auto out = stub->Upload(&context, &answer);
        for (int number = 0; number < 100; number++) {
            request.set_bytes(pattern(number, 30000));
            out->Write(request);
        }
        out->WritesDone();
        check(out->Finish());
        sum = add(sum, answer.bytes());
    }
    {
        grpc::ClientContext context;
        auto stream = stub->Talk(&context);
        for (int number = 0; number < 300; number++) {
            request.set_bytes(pattern(number, number));
            stream->Write(request);
            if (!stream->Read(&answer))
                break;
            sum = add(sum, answer.bytes());
        }
        stream->WritesDone();
        check(stream->Finish());
    }
    printf("%016lx\n", static_cast<unsigned long>(sum));
    fflush(stdout);
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (int turn = 0; std::chrono::steady_clock::now() < end; turn++) {
        grpc::ClientContext context;
        request.set_bytes(pattern(turn, 64));
        check(stub->Unary(&context, request, &answer));
        if (std::string(answer.bytes().rbegin(), answer.bytes().rend()) != request.bytes()) {
            fprintf(stderr, "wrong answer\n");
            return 1;
        }
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3)
        return 2;
    std::string address = std::string("127.0.0.1:") + words[2];
    return words[1] == std::string("serve") ? serve(address) : call(address, count > 3 ? atof(words[3]) : 0);
}
