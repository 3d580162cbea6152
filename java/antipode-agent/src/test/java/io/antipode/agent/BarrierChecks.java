package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.agent.Vectors.Check;
import io.antipode.lineage.Dependency;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/** Level 4: barriers, floors, fences, held reads and reads that wait by themselves. */
final class BarrierChecks {
  static final Map<String, Check> KINDS =
      Map.of("scripts", BarrierChecks::everyBarrierAndReadEndsAsTheScriptSays);

  /** The guard as a conversation is Python's until now. */
  static final Map<String, Check> GUARDS = Map.of("guards", (store, guard) -> {});

  /** What conversions of seconds may be off by. */
  private static final double ROUNDING_S = 1e-9;

  private BarrierChecks() {}

  private static void everyBarrierAndReadEndsAsTheScriptSays(String store, JsonNode script) {
    JsonNode found = Scripts.run(script);
    JsonNode barriers = script.get("barriers");
    assertThat(found.get("barriers")).hasSameSizeAs(barriers);
    for (int nth = 0; nth < barriers.size(); nth++) {
      checkBarrier(barriers.get(nth).get("expect"), found.get("barriers").get(nth));
    }
    JsonNode reads = script.path("reads");
    assertThat(found.path("reads").size()).isEqualTo(reads.size());
    for (int nth = 0; nth < reads.size(); nth++) {
      checkRead(reads.get(nth).get("expect"), found.get("reads").get(nth));
    }
    JsonNode stores = script.get("stores");
    for (int nth = 0; nth < stores.size(); nth++) {
      checkSpan(stores.get(nth).get("looks"), found.get("looks").get(nth));
      checkSpan(stores.get(nth).get("fences_asked"), found.get("fences").get(nth));
    }
    if (script.has("scope")) {
      checkScope(script, found);
    }
  }

  private static void checkScope(JsonNode script, JsonNode found) {
    if (script.has("scope_after")) {
      assertThat(Values.lineage(found.get("scope")))
          .isEqualTo(Values.lineage(script.get("scope_after")));
    }
    assertThat(sets(found.get("floors"), Values::write))
        .isEqualTo(sets(script.path("floors_after"), Values::write));
    JsonNode promises = found.get("promises");
    promises.properties().removeIf(each -> each.getValue().isEmpty());
    assertThat(sets(promises, Values::promise))
        .isEqualTo(sets(script.path("promises_after"), Values::promise));
  }

  private static <T> Map<String, Set<T>> sets(JsonNode lists, Function<JsonNode, T> read) {
    Map<String, Set<T>> sets = new HashMap<>();
    lists
        .properties()
        .forEach(
            each -> {
              Set<T> set = new HashSet<>();
              each.getValue().forEach(value -> set.add(read.apply(value)));
              sets.put(each.getKey(), set);
            });
    return sets;
  }

  private static void checkRead(JsonNode expect, JsonNode ended) {
    checkEnd(expect, ended);
    checkSpan(expect.get("looks"), ended.get("looks"));
    for (String name : List.of("served", "at_primary")) {
      assertThat(ended.get(name).asBoolean()).as(name).isEqualTo(expect.path(name).asBoolean());
    }
  }

  private static void checkBarrier(JsonNode expect, JsonNode ended) {
    checkEnd(expect, ended);
    if (!ended.get("ok").isNull()) {
      assertThat(ended.get("ok")).isEqualTo(expect.get("ok"));
      assertThat(Vectors.list(ended.get("incomplete")))
          .containsExactlyInAnyOrderElementsOf(Vectors.list(expect.path("incomplete")));
    }
    if (expect.has("eta_s")) {
      assertThat(ended.get("eta_s").asDouble()).isEqualTo(expect.get("eta_s").asDouble());
    }
  }

  private static void checkEnd(JsonNode expect, JsonNode ended) {
    assertThat(ended.get("code").asText()).isEqualTo(expect.path("code").asText("null"));
    checkOutcomes(expect.path("outcomes"), ended.get("outcomes"));
    checkSpan(expect.get("finished_s"), ended.get("finished_s"));
  }

  private static void checkOutcomes(JsonNode expected, JsonNode found) {
    assertThat(found.size()).isEqualTo(expected.size());
    Map<Dependency, JsonNode> outcomes = new HashMap<>();
    found.forEach(each -> outcomes.put(dependency(each), each));
    for (JsonNode expect : expected) {
      JsonNode ended = outcomes.get(dependency(expect));
      assertThat(ended).as("%s", expect).isNotNull();
      assertThat(ended.get("status")).isEqualTo(expect.get("status"));
      assertThat(ended.path("reported").asBoolean()).isEqualTo(expect.path("reported").asBoolean());
      if (expect.hasNonNull("server")) {
        assertThat(ended.get("server")).isEqualTo(expect.get("server"));
      }
    }
  }

  private static Dependency dependency(JsonNode outcome) {
    return outcome.has("promise")
        ? Values.promise(outcome.get("promise"))
        : Values.write(outcome.get("write"));
  }

  private static void checkSpan(JsonNode span, JsonNode found) {
    if (span != null) {
      assertThat(found.asDouble())
          .isBetween(
              span.get("at_least").asDouble() - ROUNDING_S,
              span.get("at_most").asDouble() + ROUNDING_S);
    }
  }
}
