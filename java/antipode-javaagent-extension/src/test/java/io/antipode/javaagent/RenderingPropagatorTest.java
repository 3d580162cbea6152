package io.antipode.javaagent;

import static org.assertj.core.api.Assertions.assertThat;

import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.BaggageEntryMetadata;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RenderingPropagatorTest {
  private static final String PROPERTY = RenderingPropagator.RENDERS + "mine";
  private static final String NAME = RenderingPropagator.NAME + "mine.7";

  @AfterEach
  void forget() {
    System.getProperties().remove(PROPERTY);
  }

  private static Map<String, String> sent(String metadata) {
    Baggage baggage =
        Baggage.builder()
            .put("tenant", "seven")
            .put("antipode", "1~old", BaggageEntryMetadata.create(metadata))
            .build();
    Map<String, String> headers = new HashMap<>();
    new RenderingPropagator(W3CBaggagePropagator.getInstance())
        .inject(
            baggage.storeInContext(Context.root()),
            headers,
            (carrier, key, value) -> Objects.requireNonNull(carrier).put(key, value));
    return headers;
  }

  private static void renders(Function<String, String> function) {
    System.getProperties().put(PROPERTY, function);
  }

  @Test
  void aNamedScopeIsAskedForItsText() {
    renders(name -> name.equals(NAME) ? "1~new" : null);
    assertThat(sent(NAME).get("baggage"))
        .contains("tenant=seven", "antipode=1~new")
        .doesNotContain("old");
  }

  @Test
  void aStoppedScopeSendsNothing() {
    renders(name -> "");
    assertThat(sent(NAME)).containsEntry("baggage", "tenant=seven");
  }

  /** What was sent before says itself that it may be old. */
  @Test
  void whatNobodyCanRenderStaysAsItIs() {
    assertThat(sent("").get("baggage")).contains("antipode=1~old");
    assertThat(sent(NAME).get("baggage")).contains("antipode=1~old");
    renders(
        name -> {
          throw new IllegalStateException("of the library");
        });
    assertThat(sent(NAME).get("baggage")).contains("antipode=1~old");
  }
}
