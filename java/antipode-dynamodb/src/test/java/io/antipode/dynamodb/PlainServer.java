package io.antipode.dynamodb;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.regions.Region;

/** Answers the requests of clients as a test says, and keeps what they were. */
final class PlainServer implements AutoCloseable {
  /**
   * What it answers.
   *
   * @param status of the reply; 0 for none before it is closed
   */
  record Answer(int status, String body) {
    static final Answer DONE = new Answer(200, "{}");
    static final Answer NONE = new Answer(0, "");

    static Answer refused(int status, String code) {
      return new Answer(status, "{\"__type\": \"com.amazonaws.dynamodb.v20120810#" + code + "\"}");
    }
  }

  /** What came: an operation, and its parameters. */
  record Received(String operation, String body) {}

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final CountDownLatch closing = new CountDownLatch(1);
  private final Queue<Function<String, Answer>> answers = new ArrayDeque<>();
  private volatile Function<String, Answer> otherwise = body -> Answer.DONE;
  private final List<Received> all = new CopyOnWriteArrayList<>();
  private final BlockingQueue<Received> arrived = new LinkedBlockingQueue<>();

  PlainServer(Answer... given) throws IOException {
    List.of(given).forEach(each -> answer(body -> each));
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(threads);
    server.createContext("/", this::answer);
    server.start();
  }

  private void answer(HttpExchange exchange) throws IOException {
    String target = exchange.getRequestHeaders().getFirst("X-Amz-Target");
    String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    Received received = new Received(target.substring(target.indexOf('.') + 1), body);
    all.add(received);
    arrived.add(received);
    Answer answer;
    synchronized (answers) {
      answer = (answers.isEmpty() ? otherwise : answers.remove()).apply(body);
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
    exchange.sendResponseHeaders(answer.status, bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }

  /** Answers by what is in them all requests for which nothing else was said. */
  void otherwise(Function<String, Answer> made) {
    otherwise = made;
  }

  /** Answers the next request by what is in it. */
  void answer(Function<String, Answer> made) {
    synchronized (answers) {
      answers.add(made);
    }
  }

  /** Configures a client of it; it tries several times. */
  <B extends AwsClientBuilder<B, ?>> B client(B builder) {
    return builder
        .region(Region.US_EAST_1)
        .endpointOverride(URI.create("http://127.0.0.1:" + server.getAddress().getPort()))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")))
        .overrideConfiguration(options -> options.apiCallTimeout(Duration.ofSeconds(20)));
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
