"""Calls of every kind over gRPC: echo.py serve PORT, echo.py call PORT SECONDS. The client prints what it computed from all
answers of a fixed list of calls, which is the same in every run, and then goes on calling until its time is over."""

import hashlib
import sys
import time
from concurrent import futures

import grpc


def whole(bytes_):
    return bytes_


def unary(request, context):
    return request[::-1]


def download(request, context):
    """As many messages as the request says, each of so many bytes."""
    count, size = (int(word) for word in request.split())
    for number in range(count):
        yield bytes((number * 7 + at) % 251 for at in range(256)) * (size // 256)


def upload(requests, context):
    digest = hashlib.sha256()
    for request in requests:
        digest.update(request)
    return digest.digest()


def talk(requests, context):
    for request in requests:
        yield request.upper()


def serve(port):
    server = grpc.server(futures.ThreadPoolExecutor(8))
    handlers = {
        "unary": grpc.unary_unary_rpc_method_handler(unary, whole, whole),
        "download": grpc.unary_stream_rpc_method_handler(download, whole, whole),
        "upload": grpc.stream_unary_rpc_method_handler(upload, whole, whole),
        "talk": grpc.stream_stream_rpc_method_handler(talk, whole, whole),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo", handlers)])
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def call(port, seconds):
    digest = hashlib.sha256()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        single = channel.unary_unary("/echo/unary", whole, whole)
        for size in (0, 1, 100, 5_000, 70_000, 1_000_000):
            for turn in range(5):
                digest.update(single(bytes((turn + at) % 256 for at in range(size)), wait_for_ready=True))
        for count, size in ((100, 256), (40, 65_536), (5, 1 << 20)):
            for message in channel.unary_stream("/echo/download", whole, whole)(f"{count} {size}".encode()):
                digest.update(message)
        pieces = [bytes([number]) * 30_000 for number in range(100)]
        digest.update(channel.stream_unary("/echo/upload", whole, whole)(iter(pieces)))
        words = (f"word {number} ".encode() * 20 for number in range(300))
        for answer in channel.stream_stream("/echo/talk", whole, whole)(words):
            digest.update(answer)
        print(digest.hexdigest(), flush=True)
        end = time.monotonic() + seconds
        calls = 0
        while time.monotonic() < end:
            text = b"again %d" % calls
            assert single(text) == text[::-1]
            calls += 1


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        call(int(sys.argv[2]), float(sys.argv[3]))
