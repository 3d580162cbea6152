package io.antipode.lineage;

import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Tuple;

/** Arbitrary values, with few names so that they meet. */
public final class Lineages {
  private Lineages() {}

  public static Arbitrary<String> anyText() {
    Arbitrary<String> characters =
        Arbitraries.strings().withCharRange('\0', '\ud7ff').ofMaxLength(6);
    return Arbitraries.oneOf(
        characters, Arbitraries.of("", "-", "~us-east", "@checkout", "a.b", "\ud83d\ude00"));
  }

  public static Arbitrary<String> datastores() {
    return Arbitraries.frequencyOf(
        Tuple.of(5, Arbitraries.of("posts", "users", "@all", "caf\u00e9")),
        Tuple.of(1, anyText().filter(name -> !name.isEmpty())));
  }

  public static Arbitrary<String> keys() {
    String uuid = "00112233-4455-6677-8899-aabbccddeeff";
    return Arbitraries.frequencyOf(
        Tuple.of(
            5,
            Arbitraries.of(
                "k",
                uuid,
                uuid + ":48000001",
                uuid + "/a b",
                "0123456789abcdef0123456789abcdef01234567",
                "rs0.5")),
        Tuple.of(1, anyText()));
  }

  public static Arbitrary<WriteId> writes() {
    Arbitrary<Long> versions =
        Arbitraries.oneOf(Arbitraries.longs().between(0, 3), Arbitraries.longs());
    Arbitrary<Integer> hours =
        Arbitraries.oneOf(
            Arbitraries.of(0, 1, 500_000, WriteId.MAX_WRITTEN_HOUR),
            Arbitraries.integers().between(499_990, 500_000));
    return Combinators.combine(
            datastores(),
            keys(),
            versions,
            anyText(),
            Arbitraries.integers().between(0, 3),
            hours,
            Arbitraries.of(false, true))
        .as(
            (datastore, key, version, opaque, kind, hour, covering) -> {
              WriteId write =
                  kind == 0
                      ? WriteId.ofOpaque(datastore, key, opaque)
                      : WriteId.of(datastore, key, version);
              write = write.writtenAt(hour);
              return covering ? write.asCovering() : write;
            });
  }

  public static Arbitrary<Incomplete> marks() {
    return Combinators.combine(
            Arbitraries.oneOf(datastores(), Arbitraries.of("")),
            Arbitraries.oneOf(Arbitraries.of("size", "in_doubt", "egress"), anyText()))
        .as(Incomplete::new);
  }

  public static Arbitrary<Promise> promises() {
    return Combinators.combine(
            datastores(),
            Arbitraries.of("0".repeat(32), "00112233445566778899aabbccddeeff"),
            Arbitraries.longs().between(0, Promise.MAX_EXPIRES_S))
        .as(Promise::new);
  }

  public static Arbitrary<String> unknown() {
    return Arbitraries.of("xa", "x-.b", "0note", "7", "_", "z0.2", "z2.3a~~b", "z1.0~", "Z");
  }

  public static Arbitrary<Lineage> lineages() {
    return Combinators.combine(
            writes().list().ofMaxSize(12),
            marks().list().ofMaxSize(4),
            promises().list().ofMaxSize(3),
            Arbitraries.oneOf(Arbitraries.of(0L), Arbitraries.longs()),
            unknown().list().ofMaxSize(3))
        .as(Lineages::lineage);
  }

  private static Lineage lineage(
      List<WriteId> writes,
      List<Incomplete> marks,
      List<Promise> promises,
      long openBranches,
      List<String> unknown) {
    Lineage.Builder lineage = Lineage.builder().openBranches(openBranches);
    writes.forEach(lineage::write);
    marks.forEach(lineage::incomplete);
    promises.forEach(lineage::promise);
    unknown.forEach(lineage::unknown);
    return lineage.build();
  }
}
