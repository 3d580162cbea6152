package io.antipode.benchmarks;

import io.antipode.Antipode;
import io.antipode.lineage.Bound;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.AntipodePropagator;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** The library's operations at five dependencies, and OpenTelemetry's at five members. */
@State(org.openjdk.jmh.annotations.Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class OperationsBenchmark {
  private static final int HOUR = 490_000;
  private static final String KEY = "a0b2c3d4-0000-1111-2222-33334444555";

  private static final TextMapGetter<Map<String, String>> GETTER =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Map<String, String> carrier) {
          return carrier.keySet();
        }

        @Override
        public String get(Map<String, String> carrier, String name) {
          return carrier.get(name);
        }
      };

  private final TextMapPropagator ours = AntipodePropagator.baggage();
  private final TextMapPropagator plain = W3CBaggagePropagator.getInstance();
  private final Map<String, String> oursIn = new HashMap<>();
  private final Map<String, String> plainIn = new HashMap<>();
  private Lineage five;
  private String text;
  private long version = 100;
  private Baggage members;
  private Context withScope;
  private Context withMembers;
  private io.opentelemetry.context.Scope entered;

  /** Enters a scope that has five dependencies. */
  @Setup
  public void begin() {
    Lineage.Builder lineage = Lineage.builder();
    var baggage = Baggage.builder();
    for (int nth = 0; nth < 5; nth++) {
      lineage.write(WriteId.of("store" + nth, KEY + nth, 48_000_000 + nth).writtenAt(HOUR));
      baggage.put("store" + nth, "spcjn.obLD1AABEfCcOgJCrBEAA" + nth);
    }
    five = lineage.build();
    members = baggage.build();
    text = five.serialize();
    Scope scope = Scope.startingFrom(five);
    withScope = scope.storeInContext(Context.root());
    withMembers = members.storeInContext(Context.root());
    ours.inject(withScope, oursIn, Map::put);
    plain.inject(withMembers, plainIn, Map::put);
    entered = members.storeInContext(withScope).makeCurrent();
  }

  /** Leaves it. */
  @TearDown
  public void end() {
    entered.close();
  }

  @Benchmark
  public Lineage append() {
    return Antipode.append(WriteId.of("store0", KEY + 0, ++version).writtenAt(HOUR));
  }

  @Benchmark
  public Lineage merge() {
    return Antipode.transfer(five);
  }

  @Benchmark
  public Lineage current() {
    return Antipode.current();
  }

  @Benchmark
  public String encode() {
    // With a write of now: what a lineage was encoded as is kept.
    return five.append(WriteId.of("store0", KEY + 0, ++version).writtenAt(HOUR))
        .serialize(Bound.ofBytes(1_024));
  }

  @Benchmark
  public Lineage decode() {
    return Lineage.deserialize(text);
  }

  @Benchmark
  public Map<String, String> inject() {
    Map<String, String> carrier = new HashMap<>();
    ours.inject(withScope, carrier, Map::put);
    return carrier;
  }

  @Benchmark
  public Context extract() {
    return ours.extract(Context.root(), oursIn, GETTER);
  }

  @Benchmark
  public Context plainSet() {
    Context set =
        Baggage.current().toBuilder()
            .put("store0", "spcjn." + ++version)
            .build()
            .storeInContext(Context.current());
    try (io.opentelemetry.context.Scope scope = set.makeCurrent()) {
      return set;
    }
  }

  @Benchmark
  public String plainGet() {
    return Baggage.current().getEntryValue("store0");
  }

  @Benchmark
  public Map<String, String> plainInject() {
    Map<String, String> carrier = new HashMap<>();
    plain.inject(withMembers, carrier, Map::put);
    return carrier;
  }

  @Benchmark
  public Context plainExtract() {
    return plain.extract(Context.root(), plainIn, GETTER);
  }
}
