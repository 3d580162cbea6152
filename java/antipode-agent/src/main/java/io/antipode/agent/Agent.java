package io.antipode.agent;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.antipode.AntipodeException;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.propagation.OutgoingCall;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The conformance agent of the specification: answers each line of its standard input. */
public final class Agent {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final ObjectMapper mapper = new ObjectMapper();
  private final Scopes scopes = new Scopes();
  private final Stores stores = new Stores();
  private final Waits waits = new Waits();
  private final Statistics statistics = new Statistics();
  private final PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private Agent() {}

  /** Answers requests, each in a thread of its own, until the standard input ends. */
  public static void main(String[] args) throws IOException {
    Agent agent = new Agent();
    ExecutorService threads = Executors.newCachedThreadPool();
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      agent.take(line, threads);
    }
    agent.waits.cancelAll();
    agent.stores.closeAll(); // Ends who waits at them.
    threads.shutdown();
    System.exit(0);
  }

  private void take(String line, ExecutorService threads) {
    JsonNode request;
    try {
      request = mapper.readTree(line);
    } catch (JsonProcessingException error) {
      ObjectNode answer = JSON.objectNode();
      fail(answer, error);
      answers.println(answer);
      return;
    }
    long number = request.path("id").asLong();
    waits.began(number);
    threads.execute(
        () -> {
          ObjectNode answer = JSON.objectNode();
          Thread thread = new Thread(() -> run(request, answer), "request " + number);
          thread.start();
          try {
            thread.join(); // Its end notifies a dry run that the reads of the request are over.
          } catch (InterruptedException ended) {
            return; // Nobody reads answers any more.
          }
          waits.ended(number);
          answers.println(answer);
        });
  }

  private void run(JsonNode request, ObjectNode answer) {
    answer.set("id", request.path("id"));
    try {
      answer.set("value", scopes.within(request, () -> value(Values.text(request, "op"), request)));
    } catch (Exception error) {
      fail(answer, error);
    }
  }

  private static void fail(ObjectNode answer, Exception error) {
    ObjectNode said = answer.putObject("error").put("message", String.valueOf(error.getMessage()));
    if (error instanceof AntipodeException ours) {
      said.put("code", ours.code());
      if (ours instanceof LineageDecodeException decoding) {
        said.put("offset", decoding.offset());
      }
      if (ours instanceof UnmetException unmet) {
        said.set("result", Values.json(unmet.result()));
      }
    } else if (error instanceof AgentException senseless) {
      said.put("code", senseless.code());
    } else if (error instanceof CancellationException) {
      said.put("code", "cancelled");
    } else if (error instanceof JsonProcessingException
        || error instanceof IllegalArgumentException) {
      said.put("code", "agent");
    } else {
      said.put("code", "store").put("type", error.getClass().getSimpleName());
    }
  }

  private JsonNode value(String operation, JsonNode arguments) throws Exception {
    return switch (operation) {
      case "hello" -> hello();
      case "parse" -> parse(Values.text(arguments, "text"));
      case "render" -> TextNode.valueOf(render(arguments));
      case "algebra" -> Algebra.run(Values.argument(arguments, "steps"));
      case "script" -> Scripts.run(Values.argument(arguments, "script"));
      case "explain" -> explain(Values.text(arguments, "text"));
      case "configure" -> Configuration.configure(Values.argument(arguments, "settings"));
      case "statistics" -> statistics.now();
      case "reset" -> reset(Values.argument(arguments, "settings"));
      case "open_scope" -> scopes.open(arguments);
      case "close_scope" -> scopes.close(arguments);
      case "lineage" -> scopes.lineage(arguments);
      case "merge_into" -> scopes.mergeInto(arguments);
      case "request_headers" -> scopes.requestHeaders(arguments);
      case "response_headers" -> scopes.responseHeaders(arguments);
      case "receive" -> scopes.receive(arguments);
      case "fulfilling" -> scopes.fulfilling(arguments);
      case "promise" -> scopes.promise(arguments);
      case "open_shim" -> stores.open(arguments);
      case "close_shim" -> stores.close(arguments);
      case "write" -> stores.write(arguments);
      case "delete" -> stores.delete(arguments);
      case "read" -> stores.read(arguments, waits);
      case "rolled_back" -> stores.rolledBack(arguments);
      case "jdbc" -> stores.jdbc(arguments);
      case "mongo" -> stores.mongo(arguments);
      case "consume" -> stores.consume(arguments);
      case "wait" -> stores.await(arguments, waits);
      case "barrier" -> waits.barrier(arguments);
      case "check" -> waits.check(arguments);
      case "cancel" -> waits.cancel(arguments);
      case "abandon" -> waits.abandon(arguments);
      case "decide" -> Decisions.decide(arguments);
      case "headers" ->
          HeaderVectors.judge(Values.text(arguments, "kind"), Values.argument(arguments, "given"));
      case "call" -> throw AgentException.unsupported("names of calls");
      case "guard" -> throw AgentException.unsupported("a guard as a conversation");
      default -> throw AgentException.senseless("no operation " + operation);
    };
  }

  /** The next test begins. */
  private JsonNode reset(JsonNode settings) {
    List<String> left = Stream.concat(scopes.open().stream(), stores.open().stream()).toList();
    if (!left.isEmpty()) {
      throw AgentException.senseless("still open: " + String.join(", ", left));
    }
    Configuration.configure(settings);
    OutgoingCall.forgetPeers();
    statistics.reset();
    return NullNode.instance;
  }

  private static JsonNode hello() {
    @Nullable String version = Agent.class.getPackage().getImplementationVersion();
    ObjectNode value = JSON.objectNode();
    value.put("language", "java").put("version", version == null ? "unknown" : version);
    Stores.NAMES.forEach(value.putArray("stores")::add);
    return value;
  }

  private static JsonNode parse(String text) {
    Lineage lineage = Lineage.deserialize(text);
    ObjectNode value = JSON.objectNode();
    value.set("lineage", Values.json(lineage));
    return value.put("text", lineage.serialize());
  }

  private static String render(JsonNode arguments) {
    Lineage lineage = Values.lineage(Values.argument(arguments, "lineage"));
    return arguments.hasNonNull("max_bytes") || arguments.hasNonNull("egress")
        ? lineage.serialize(Algebra.bound(arguments))
        : lineage.serialize();
  }

  private static JsonNode explain(String text) {
    ArrayNode lines = JSON.arrayNode();
    Explanation.of(Lineage.deserialize(text)).forEach(lines::add);
    return lines;
  }
}
