package io.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.BaggageBuilder;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class PropagatorTest {
  private static final WriteId POST = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId USER = WriteId.of("users", "log", 7).writtenAt(100);
  private static final TextMapPropagator PROPAGATOR =
      AntipodePropagator.wrap(
          TextMapPropagator.composite(
              W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance()));

  private enum Carrier implements TextMapGetter<Map<String, String>> {
    GETTER;

    @Override
    public Iterable<String> keys(Map<String, String> carrier) {
      return carrier.keySet();
    }

    @Override
    public @Nullable String get(@Nullable Map<String, String> carrier, String key) {
      return Objects.requireNonNull(carrier).get(key);
    }
  }

  private static Map<String, String> injected(TextMapPropagator propagator, Context context) {
    Map<String, String> carrier = new HashMap<>();
    propagator.inject(context, carrier, (map, key, value) -> map.put(key, value));
    return carrier;
  }

  private static @Nullable String header(Context context) {
    return injected(PROPAGATOR, context).get("baggage");
  }

  private static Scope extracted(Context context, Map<String, String> carrier) {
    Context found = PROPAGATOR.extract(context, carrier, Carrier.GETTER);
    return Objects.requireNonNull(Scope.fromContextOrNull(found));
  }

  @Test
  void theLineageOfTheMomentOfInjectionIsSentFromAnyCopyOfTheContext() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Context copied = Context.current().with(io.opentelemetry.context.ContextKey.named("x"), "y");
      Antipode.append(USER);
      assertThat(header(copied)).isEqualTo("antipode=" + Lineage.of(POST, USER).serialize());
    }
  }

  @Test
  void theUsersMembersKeepTheirMeaning() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Baggage baggage = Baggage.current().toBuilder().put("tenant", "a b").build();
      assertThat(header(baggage.storeInContext(Context.current())))
          .isEqualTo("antipode=" + Lineage.of(POST).serialize() + ",tenant=a%20b");
    }
  }

  @Test
  void whoClearsTheBaggageStopsSendingTheLineageAndKeepsTheScope() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Context cleared = Baggage.empty().storeInContext(Context.current());
      assertThat(header(cleared)).isNull();
      Baggage removed = Baggage.current().toBuilder().remove(Scope.MEMBER).build();
      assertThat(header(removed.storeInContext(Context.current()))).isNull();
      assertThat(Scope.fromContextOrNull(cleared)).isSameAs(block.scope());
    }
  }

  @Test
  void aStoppedScopeSendsNothing() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Context context = Context.current();
      Antipode.stop();
      assertThat(header(context)).isNull();
    }
  }

  @Test
  void aServiceWithoutScopesPassesTheMemberOn() {
    Baggage baggage = Baggage.builder().put(Scope.MEMBER, "1~ka.5.k").build();
    assertThat(header(baggage.storeInContext(Context.root()))).isEqualTo("antipode=1~ka.5.k");
  }

  @Test
  void aHeaderOfTheApplicationKeepsItsMembersAndItsLineage() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Map<String, String> carrier = new HashMap<>();
      carrier.put("baggage", "tenant=acme,antipode=" + Lineage.of(USER).serialize());
      PROPAGATOR.inject(Context.current(), carrier, (map, key, value) -> map.put(key, value));
      assertThat(carrier)
          .containsEntry(
              "baggage", "antipode=" + Lineage.of(POST, USER).serialize() + ",tenant=acme");
    }
  }

  @Test
  void aLineageInAHeaderThatBaggageReplacesIsSent() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Map<String, String> carrier = new HashMap<>();
      carrier.put("baggage", "antipode=" + Lineage.of(USER).serialize());
      Context tenant =
          Baggage.current().toBuilder()
              .put("tenant", "acme")
              .build()
              .storeInContext(Context.current());
      PROPAGATOR.inject(tenant, carrier, (map, key, value) -> map.put(key, value));
      assertThat(carrier)
          .containsEntry(
              "baggage", "antipode=" + Lineage.of(POST, USER).serialize() + ",tenant=acme");
    }
  }

  @Test
  void theLineageGoesFirstWhereBaggageIsTooLong() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      BaggageBuilder many = Baggage.current().toBuilder();
      for (int i = 0; i < 100; i++) {
        many.put("member" + i, "x".repeat(200));
      }
      String header = header(many.build().storeInContext(Context.current()));
      assertThat(header)
          .startsWith("antipode=" + Lineage.of(POST).serialize() + ",member")
          .hasSizeLessThanOrEqualTo(8_192)
          .endsWith("x");
    }
  }

  @Test
  void anExtractionInTheSameRequestJoins() {
    Map<String, String> first = Map.of("baggage", "antipode=" + Lineage.of(POST).serialize());
    Context context = PROPAGATOR.extract(Context.root(), first, Carrier.GETTER);
    Scope scope = Objects.requireNonNull(Scope.fromContextOrNull(context));
    Map<String, String> second = Map.of("baggage", "antipode=" + Lineage.of(USER).serialize());
    assertThat(extracted(context, second)).isSameAs(scope);
    assertThat(scope.lineage()).isEqualTo(Lineage.of(POST, USER));
    assertThat(scope.answer()).as("both came").isEqualTo("1");
    try (var entered = context.makeCurrent()) {
      assertThat(extracted(Context.root(), first))
          .as("the same carrier, after a propagator that begins with an empty context")
          .isSameAs(scope);
      assertThat(extracted(Context.root(), second)).as("another request").isNotSameAs(scope);
    }
    scope.end();
    assertThat(extracted(context, first)).isNotSameAs(scope);
  }

  @Test
  void propagationNeverThrows() {
    TextMapGetter<Map<String, String>> failing =
        new TextMapGetter<>() {
          @Override
          public Iterable<String> keys(Map<String, String> carrier) {
            return carrier.keySet();
          }

          @Override
          public @Nullable String get(@Nullable Map<String, String> carrier, String key) {
            if (key.equals("antipode-sent")) {
              throw new IllegalStateException("of the carrier");
            }
            return null;
          }
        };
    Context context = PROPAGATOR.extract(Context.root(), Map.of(), failing);
    assertThat(Objects.requireNonNull(Scope.fromContextOrNull(context)).lineage())
        .isEqualTo(Lineage.empty().marked(new Incomplete("baggage", "unreadable")));
  }

  @Test
  void whatCarriesNoBaggageIsRefusedAndWhatIsWrappedStays() {
    assertThatThrownBy(() -> AntipodePropagator.wrap(W3CTraceContextPropagator.getInstance()))
        .isInstanceOf(ConfigurationException.class);
    assertThat(AntipodePropagator.wrap(PROPAGATOR)).isSameAs(PROPAGATOR);
    assertThat(PROPAGATOR.fields()).contains("baggage", "traceparent");
  }

  @Test
  void theSdkThatConfiguresItselfFindsIt() {
    OpenTelemetry sdk =
        AutoConfiguredOpenTelemetrySdk.builder()
            .addPropertiesSupplier(
                () ->
                    Map.of(
                        "otel.traces.exporter", "none",
                        "otel.metrics.exporter", "none",
                        "otel.logs.exporter", "none"))
            .build()
            .getOpenTelemetrySdk();
    TextMapPropagator propagator = sdk.getPropagators().getTextMapPropagator();
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Context context = Context.current();
      Antipode.append(USER);
      Map<String, String> sent = injected(propagator, context);
      assertThat(sent).containsEntry("baggage", "antipode=" + Antipode.serialize());
      Context came = propagator.extract(Context.root(), sent, Carrier.GETTER);
      assertThat(Objects.requireNonNull(Scope.fromContextOrNull(came)).lineage())
          .isEqualTo(block.scope().lineage());
    }
  }
}
