package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.propagation.IncomingRequest;
import io.antipode.runtime.Counts;
import io.antipode.session.SessionRequest;
import io.antipode.session.SessionVectors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Session cookies of level 3: what requests of one user start from, and what answers set. */
final class Sessions {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final int ROOM = 971;
  private static final int AGE_S = 60;

  private Sessions() {}

  static ObjectNode judge(JsonNode given) {
    Settings before = Settings.configure(held -> settings(held, given));
    try {
      SessionVectors cookie = new SessionVectors(given.path("room").asInt(ROOM));
      ObjectNode value = JSON.objectNode();
      ArrayNode requests = value.putArray("requests");
      for (JsonNode request : given.path("requests")) {
        long second = request.path("at_s").asLong();
        requests.add(SessionVectors.at(second, () -> visited(cookie, request)));
      }
      return value;
    } finally {
      Settings.configure(held -> before);
    }
  }

  private static Settings settings(Settings held, JsonNode given) {
    int age = given.path("session_max_age_s").asInt(AGE_S);
    Settings changed = held.withSessionMaxAge(Duration.ofSeconds(age));
    return given.has("egress") ? changed.withEgress(Values.texts(given.get("egress"))) : changed;
  }

  private static ObjectNode visited(SessionVectors cookie, JsonNode request) {
    Map<Counts.Metric, Long> before = Counts.all();
    ObjectNode value = JSON.objectNode();
    try (IncomingRequest incoming = HeaderVectors.received(request.path("headers"))) {
      SessionRequest sessionRequest =
          cookie.begin(
              incoming.scope(),
              contents(request.path("cookies")),
              Values.texts(request.path("pairs")),
              contents(request.path("tokens")));
      value.set("starts", Values.json(incoming.scope().lineage()));
      incoming.scope().merge(added(request));
      SessionRequest.Change change =
          sessionRequest.change(
              request.path("status").asInt(200), HeaderMap.of(request.path("answer")));
      set(value, cookie, change);
      value.set("counts", counts(before));
      value.put("token", cookie.token());
    }
    return value;
  }

  private static List<@Nullable String> contents(JsonNode list) {
    List<@Nullable String> contents = new ArrayList<>();
    list.forEach(each -> contents.add(each.isNull() ? null : each.asText()));
    return contents;
  }

  /** As it is: a write that is recorded here would state the present hour. */
  private static Lineage added(JsonNode request) {
    Lineage.Builder added = Lineage.builder();
    request.path("adds").forEach(write -> added.write(Values.write(write)));
    request
        .path("marks")
        .forEach(
            mark -> added.incomplete(new Incomplete(mark.get(0).asText(), mark.get(1).asText())));
    added.openBranches(Long.parseUnsignedLong(request.path("open_branches").asText("0")));
    return added.build();
  }

  private static void set(
      ObjectNode value, SessionVectors cookie, SessionRequest.@Nullable Change change) {
    if (change == null) {
      value.putNull("content").putNull("cache_control").put("lasts", false);
      return;
    }
    value.put("content", cookie.content(change.value()));
    value.put("cache_control", change.cacheControl());
    value.put("lasts", !change.setCookie().contains("Max-Age=0;"));
  }

  private static ObjectNode counts(Map<Counts.Metric, Long> before) {
    Map<String, Long> changed = new TreeMap<>();
    Counts.all()
        .forEach(
            (metric, number) -> {
              String name = metric.name();
              long more = number - before.getOrDefault(metric, 0L);
              if (more > 0 && (name.startsWith("session_") || name.equals("dropped_for_size"))) {
                changed.merge(name, more, Long::sum);
              }
            });
    ObjectNode counts = JSON.objectNode();
    changed.forEach(counts::put);
    return counts;
  }

  /** Signs with the first of some keys, and says what they make of a value. */
  static ObjectNode sign(JsonNode given) {
    List<String> keys = Values.texts(given.path("keys"));
    boolean isToken = given.path("of").asText().equals("token");
    return JSON.objectNode()
        .put("value", SessionVectors.sign(keys, isToken, Values.text(given, "content")))
        .put("read", SessionVectors.unsign(keys, isToken, Values.text(given, "came")));
  }
}
