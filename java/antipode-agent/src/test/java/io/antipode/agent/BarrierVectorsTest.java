package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.lineage.Dependency;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The vectors of level 4: barriers, floors, fences, held reads and reads that wait by themselves.
 */
class BarrierVectorsTest {
  /** What conversions of seconds may be off by. */
  private static final double ROUNDING_S = 1e-9;

  @TestFactory
  Stream<DynamicTest> everyBarrierAndReadEndsAsTheScriptSays() {
    return Stream.of("L4-barrier", "L4-automatic")
        .flatMap(
            level -> Vectors.tests(level, "scripts", script -> check(script, Scripts.run(script))));
  }

  private static void check(JsonNode script, JsonNode found) {
    JsonNode barriers = script.get("barriers");
    for (int nth = 0; nth < barriers.size(); nth++) {
      checkBarrier(barriers.get(nth).get("expect"), found.get("barriers").get(nth));
    }
    JsonNode reads = script.path("reads");
    for (int nth = 0; nth < reads.size(); nth++) {
      JsonNode expect = reads.get(nth).get("expect");
      JsonNode ended = found.get("reads").get(nth);
      checkEnd(expect, ended);
      checkSpan(expect.get("looks"), ended.get("looks"));
      assertThat(ended.get("served").asBoolean()).isEqualTo(expect.path("served").asBoolean());
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

  private static void checkBarrier(JsonNode expect, JsonNode ended) {
    checkEnd(expect, ended);
    if (!ended.get("ok").isNull()) {
      assertThat(ended.get("ok")).isEqualTo(expect.get("ok"));
      Set<JsonNode> marks = new HashSet<>();
      expect.path("incomplete").forEach(marks::add);
      assertThat(ended.get("incomplete")).hasSize(marks.size()).allMatch(marks::contains);
    }
    if (expect.has("eta_s")) {
      assertThat(ended.get("eta_s").asDouble()).isEqualTo(expect.get("eta_s").asDouble());
    }
  }

  private static void checkEnd(JsonNode expect, JsonNode ended) {
    assertThat(ended.get("code").asText()).isEqualTo(expect.path("code").asText("null"));
    assertThat(outcomes(ended.get("outcomes"))).isEqualTo(outcomes(expect.path("outcomes")));
    checkSpan(expect.get("finished_s"), ended.get("finished_s"));
  }

  private static Map<Dependency, String> outcomes(JsonNode found) {
    Map<Dependency, String> outcomes = new HashMap<>();
    found.forEach(
        each ->
            outcomes.put(
                each.has("promise")
                    ? Values.promise(each.get("promise"))
                    : Values.write(each.get("write")),
                each.get("status").asText()
                    + (each.path("reported").asBoolean() ? ", reported" : "")));
    return outcomes;
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
