package io.antipode.lineage;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/** What the specification says of all lineages. */
class LineageLawsTest {
  @Provide
  Arbitrary<Lineage> lineages() {
    return Lineages.lineages();
  }

  @Provide
  Arbitrary<WriteId> writes() {
    return Lineages.writes();
  }

  @Provide
  Arbitrary<String> nearlyTexts() {
    return Arbitraries.strings()
        .withChars("1~.-_akuUrRipozhxZ0259")
        .ofMaxLength(40)
        .map(rest -> "1" + rest);
  }

  @Property
  void aTextIsReadBackAsItsLineage(@ForAll("lineages") Lineage lineage) {
    String text = lineage.serialize();
    assertThat(Lineage.deserialize(text)).isEqualTo(lineage);
    assertThat(Lineage.deserialize(text).serialize()).isEqualTo(text);
  }

  @Property
  void lineagesAreEqualExactlyIfTheirTextsAre(
      @ForAll("lineages") Lineage one, @ForAll("lineages") Lineage other) {
    assertThat(one.equals(other)).isEqualTo(one.serialize().equals(other.serialize()));
    Lineage both = one.merge(other);
    assertThat(both.equals(one)).isEqualTo(both.serialize().equals(one.serialize()));
  }

  @Property
  void mergeIsAJoin(
      @ForAll("lineages") Lineage a, @ForAll("lineages") Lineage b, @ForAll("lineages") Lineage c) {
    assertThat(a.merge(b).merge(c)).isEqualTo(a.merge(b.merge(c)));
    assertThat(a.merge(b, c)).isEqualTo(c.merge(b, a));
    assertThat(a.merge(a)).isEqualTo(a);
    assertThat(a.merge(b).merge(b)).isEqualTo(a.merge(b));
  }

  @Property
  void appendIsAMergeInAnyOrder(
      @ForAll("lineages") Lineage lineage, @ForAll("writes") WriteId write, @ForAll long seed) {
    List<WriteId> writes = new ArrayList<>(lineage.writes());
    writes.add(write);
    Collections.shuffle(writes, new Random(seed));
    Lineage appended = Lineage.empty();
    for (WriteId one : writes) {
      appended = appended.append(one);
    }
    assertThat(appended.writes()).isEqualTo(lineage.append(write).writes());
  }

  @Property
  void aRemovedWriteIsGoneAndNothingElse(
      @ForAll("lineages") Lineage lineage, @ForAll("writes") WriteId write) {
    Lineage without = lineage.append(write).remove(write);
    assertThat(without.writes()).doesNotContain(write, write.asCovering());
    assertThat(without.incomplete()).isEqualTo(lineage.incomplete());
    assertThat(without.promises()).isEqualTo(lineage.promises());
    assertThat(without.unknown()).isEqualTo(lineage.unknown());
  }

  @Property
  void aTextIsReadOrRefused(@ForAll String text) {
    readOrRefused(text);
  }

  @Property(tries = 5_000)
  void whatLooksLikeATextIsReadOrRefused(@ForAll("nearlyTexts") String text) {
    readOrRefused(text);
  }

  @Property
  void aChangedTextIsReadOrRefused(
      @ForAll("lineages") Lineage lineage, @ForAll @IntRange(max = 400) int at, @ForAll char c) {
    String text = lineage.serialize();
    int cut = Math.min(at, text.length());
    readOrRefused(text.substring(0, cut));
    readOrRefused(text.substring(cut));
    readOrRefused(text.substring(0, cut) + c + text.substring(cut));
  }

  private static void readOrRefused(String text) {
    Lineage lineage;
    try {
      lineage = Lineage.deserialize(text);
    } catch (LineageDecodeException refused) {
      assertThat(refused.code()).startsWith("lineage_");
      assertThat(refused.offset()).isBetween(0, text.length());
      return;
    }
    assertThat(Lineage.deserialize(lineage.serialize())).isEqualTo(lineage);
  }

  @Property
  void aBoundedTextSaysOfAllThatIsAbsentThatItMayBe(
      @ForAll("lineages") Lineage lineage, @ForAll @IntRange(min = 18, max = 500) int maxBytes) {
    String text = lineage.serialize(Bound.ofBytes(maxBytes));
    Lineage sent = Lineage.deserialize(text);
    assertThat(text.length() + "antipode=".length()).isLessThanOrEqualTo(maxBytes);
    assertThat(sent.serialize()).isEqualTo(text);
    assertThat(lineage.writes()).containsAll(sent.writes());
    assertThat(lineage.promises()).containsAll(sent.promises());
    assertThat(lineage.unknown()).containsAll(sent.unknown());
    Incomplete any = new Incomplete("", "size");
    for (WriteId write : lineage.writes()) {
      if (!sent.writes().contains(write)) {
        assertThat(sent.incomplete()).containsAnyOf(any, new Incomplete(write.datastore(), "size"));
      }
    }
    for (Promise promise : lineage.promises()) {
      if (!sent.promises().contains(promise)) {
        assertThat(sent.incomplete())
            .containsAnyOf(
                any, new Incomplete("", "promise"), new Incomplete(promise.datastore(), "promise"));
      }
    }
  }

  @Property
  void egressNamesNobodyElse(@ForAll("lineages") Lineage lineage) {
    List<String> listed = List.of("posts");
    Lineage sent = Lineage.deserialize(lineage.serialize(Bound.none().withEgress(listed)));
    assertThat(sent.writes()).allMatch(write -> write.datastore().equals("posts"));
    assertThat(sent.promises()).allMatch(promise -> promise.datastore().equals("posts"));
    assertThat(sent.incomplete())
        .allMatch(m -> m.subject().equals("posts") || m.subject().isEmpty());
    assertThat(sent.unknown()).isEmpty();
    assertThat(sent.writes()).isEqualTo(lineage.only(listed).writes());
  }

  @Property
  void aScopeHoldsWhatFits(@ForAll("lineages") Lineage lineage) {
    assertThat(lineage.holdable()).isSameAs(lineage);
  }
}
