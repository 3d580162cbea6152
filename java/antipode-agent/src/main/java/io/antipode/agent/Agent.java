package io.antipode.agent;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.antipode.AntipodeException;
import io.antipode.Lineage;
import io.antipode.LineageDecodeException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The conformance agent of the specification: answers each line of its standard input. */
public final class Agent {
  /** The operations of the specification that this agent does not have. */
  private static final Set<String> UNSUPPORTED =
      Set.of(
          "decide",
          "statistics",
          "open_shim",
          "write",
          "delete",
          "read",
          "rolled_back",
          "wait",
          "close_shim",
          "barrier",
          "check",
          "cancel",
          "abandon");

  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final ObjectMapper mapper = new ObjectMapper();
  private final Scopes scopes = new Scopes();

  private Agent() {}

  /** Answers requests until the standard input ends. */
  public static void main(String[] args) throws IOException {
    Agent agent = new Agent();
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      answers.println(agent.answer(line));
    }
  }

  /** Nothing that this agent does waits, so requests are answered one after the other. */
  private String answer(String line) throws JsonProcessingException {
    ObjectNode answer = JSON.objectNode();
    try {
      JsonNode request = mapper.readTree(line);
      answer.set("id", request.path("id"));
      answer.set("value", value(Values.text(request, "op"), request));
    } catch (LineageDecodeException error) {
      error(answer, error.code(), error).put("offset", error.offset());
    } catch (AntipodeException error) {
      error(answer, error.code(), error);
    } catch (AgentException error) {
      error(answer, error.code(), error);
    } catch (JsonProcessingException | IllegalArgumentException error) {
      error(answer, "agent", error);
    }
    return mapper.writeValueAsString(answer);
  }

  private static ObjectNode error(ObjectNode answer, String code, Exception error) {
    return answer.putObject("error").put("code", code).put("message", error.getMessage());
  }

  private JsonNode value(String operation, JsonNode arguments) {
    return switch (operation) {
      case "hello" -> hello();
      case "parse" -> parse(Values.text(arguments, "text"));
      case "render" -> TextNode.valueOf(render(arguments));
      case "algebra" -> Algebra.run(Values.argument(arguments, "steps"));
      case "script" -> Scripts.run(Values.argument(arguments, "script"));
      case "explain" -> explain(Values.text(arguments, "text"));
      case "configure" -> Configuration.configure(Values.argument(arguments, "settings"));
      case "open_scope" -> scopes.open(arguments);
      case "close_scope" -> scopes.close(arguments);
      case "lineage" -> scopes.lineage(arguments);
      case "merge_into" -> scopes.mergeInto(arguments);
      case "request_headers" -> scopes.requestHeaders(arguments);
      case "response_headers" -> scopes.responseHeaders(arguments);
      case "receive" -> scopes.receive(arguments);
      case "fulfilling" -> scopes.fulfilling(arguments);
      case "promise" -> scopes.promise(arguments);
      default ->
          throw UNSUPPORTED.contains(operation)
              ? AgentException.unsupported(operation)
              : AgentException.senseless("no operation " + operation);
    };
  }

  private static JsonNode hello() {
    @Nullable String version = Agent.class.getPackage().getImplementationVersion();
    ObjectNode value = JSON.objectNode();
    value.put("language", "java").put("version", version == null ? "unknown" : version);
    value.putArray("stores");
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
