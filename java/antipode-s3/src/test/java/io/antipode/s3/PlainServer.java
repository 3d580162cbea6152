package io.antipode.s3;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.regions.Region;

/** Answers the requests of clients one by one as a test says, and keeps what they were. */
final class PlainServer implements AutoCloseable {
  /**
   * What it answers.
   *
   * @param status of the reply; 0 for none before it is closed
   */
  record Answer(int status, Map<String, String> headers, String body) {
    static final Answer NONE = new Answer(0, Map.of(), "");

    static Answer version(String version) {
      return new Answer(200, Map.of("x-amz-version-id", version), "");
    }

    static Answer refused(int status, String code) {
      return new Answer(status, Map.of(), "<Error><Code>" + code + "</Code></Error>");
    }
  }

  /** What came: a method, the path with its query, and the metadata that is ours. */
  record Received(String method, String uri, String label) {}

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final CountDownLatch closing = new CountDownLatch(1);
  private final Queue<Answer> answers = new ArrayDeque<>();
  private final List<Received> all = new CopyOnWriteArrayList<>();
  private final BlockingQueue<Received> arrived = new LinkedBlockingQueue<>();

  PlainServer(Answer... given) throws IOException {
    answers.addAll(List.of(given));
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(threads);
    server.createContext("/", this::answer);
    server.start();
  }

  private void answer(HttpExchange exchange) throws IOException {
    String label = exchange.getRequestHeaders().getFirst("x-amz-meta-antipode");
    Received received =
        new Received(exchange.getRequestMethod(), exchange.getRequestURI().toString(), label);
    exchange.getRequestBody().readAllBytes();
    Answer answer;
    synchronized (answers) {
      all.add(received);
      arrived.add(received);
      answer = answers.size() > 1 ? answers.remove() : answers.element();
    }
    if (answer.status == 0) {
      try {
        closing.await();
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
      exchange.close();
      return;
    }
    byte[] bytes = answer.body.getBytes(StandardCharsets.UTF_8);
    answer.headers.forEach(exchange.getResponseHeaders()::add);
    exchange.sendResponseHeaders(answer.status, bytes.length == 0 ? -1 : bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }

  /** Configures a client of it; it tries several times. */
  <B extends AwsClientBuilder<B, ?>> B client(B builder) {
    return builder
        .region(Region.US_EAST_1)
        .endpointOverride(URI.create("http://127.0.0.1:" + server.getAddress().getPort()))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")));
  }

  /** Returns what comes next. */
  Received next() throws InterruptedException {
    Received received = arrived.poll(20, TimeUnit.SECONDS);
    if (received == null) {
      throw new AssertionError("no request came");
    }
    return received;
  }

  /** Returns all that came. */
  List<Received> all() {
    return all;
  }

  @Override
  public void close() {
    closing.countDown();
    server.stop(0);
    threads.shutdownNow();
  }
}
