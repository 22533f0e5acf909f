// An HTTP server that sends back what it is sent, and a client that checks it: `Web serve PORT`, `Web ask PORT CLIENTS`.

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

public class Web {
    static final int REQUESTS = 400;

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[1]);
        if (arguments[0].equals("serve")) {
            serve(port);
            return;
        }
        int clients = Integer.parseInt(arguments[2]);
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        var threads = Executors.newFixedThreadPool(clients);
        var answers = new ArrayList<Future<?>>();
        for (int number = 0; number < REQUESTS; number++) {
            int which = number;
            answers.add(threads.submit(() -> {
                ask(client, port, which);
                return null;
            }));
        }
        for (var answer : answers) {
            answer.get();
        }
        threads.shutdown();
        System.out.println(REQUESTS + " answers");
    }

    static void serve(int port) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            byte[] body = exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    static void ask(HttpClient client, int port, int number) throws Exception {
        byte[] body = ("request " + number + "\n").repeat(1 + number * number % 5000).getBytes();
        var request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/"))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
        byte[] got = client.send(request, HttpResponse.BodyHandlers.ofByteArray()).body();
        if (!Arrays.equals(got, body)) {
            throw new Exception("request " + number + ": " + got.length + " bytes came back, not " + body.length);
        }
    }
}
