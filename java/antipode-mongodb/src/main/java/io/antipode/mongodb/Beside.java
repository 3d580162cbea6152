package io.antipode.mongodb;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.bson.BsonArray;
import org.bson.BsonBinaryWriter;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.bson.codecs.BsonDocumentCodec;
import org.bson.codecs.EncoderContext;
import org.bson.io.BasicOutputBuffer;
import org.jspecify.annotations.Nullable;

/** The field of a document that has its lineage, and how to know that it is still its own. */
final class Beside {
  static final String FIELD = "_ap";

  private static final BsonDocumentCodec CODEC = new BsonDocumentCodec();
  private static final int DIGEST_BYTES = 9;
  private static final int MOST_PARTS = 16;
  private static final String PART = "~";
  private static final Incomplete SIZE = new Incomplete("", "size");

  /** What lies in the field; a text, or what a plain client put there, becomes a part. */
  private static final BsonDocument HELD =
      BsonDocument.parse(
          """
          {$switch: {
            branches: [
              {case: {$eq: [{$type: "$_ap"}, "object"]}, then: "$_ap"},
              {case: {$eq: [{$type: "$_ap"}, "missing"]}, then: {}}],
            default: {p: ["$_ap"]}}}
          """);

  /** The texts of {@code $$held} with {@code $$text}, whose oldest go where they are too many. */
  private static final BsonDocument PARTS =
      BsonDocument.parse(
          """
          {$let: {
            vars: {others: {$filter: {
              input: "$$held", cond: {$not: {$in: ["$$this", ["$$text", "$$full"]]}}}}},
            in: {$concatArrays: [
              {$cond: [
                {$or: [{$gte: [{$size: "$$others"}, "$$most"]}, {$in: ["$$full", "$$held"]}]},
                ["$$full"], []]},
              {$slice: ["$$others", {$subtract: [1, "$$most"]}]},
              ["$$text"]]}}}
          """);

  /** The positions of {@code $$held} next to those of {@code $$names}, and whether some went. */
  private static final BsonDocument OTHERS =
      BsonDocument.parse(
          """
          {$filter: {
            input: {$objectToArray: {$ifNull: ["$_ap.l", {}]}},
            cond: {$not: {$in: ["$$this.k", "$$names"]}}}}
          """);

  /** How a value and its stored lineage go together. */
  enum Match {
    OWN,
    COMPANION_ABSENT,
    FOREIGN,
    UNREADABLE;

    /** Returns the name under which it is counted. */
    String metric() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** A stored lineage, and whether it is the value's own. */
  record Stored(Lineage lineage, Match match) {}

  private Beside() {}

  private static String digest(BsonValue value) {
    BasicOutputBuffer bytes = new BasicOutputBuffer();
    try (BsonBinaryWriter writer = new BsonBinaryWriter(bytes)) {
      CODEC.encode(writer, Bson.doc("v", value), EncoderContext.builder().build());
      byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes.toByteArray());
      return Base64.getUrlEncoder().encodeToString(Arrays.copyOf(sum, DIGEST_BYTES));
    } catch (NoSuchAlgorithmException impossible) { // Every Java has it.
      throw new IllegalStateException(impossible);
    }
  }

  /** Returns what a write of a whole value stores with it. */
  static BsonDocument whole(BsonValue value, Lineage lineage) {
    return Bson.doc("w", digest(value) + "|" + LineageText.stored(lineage));
  }

  private static String part(Lineage lineage) {
    return PART + "|" + LineageText.stored(lineage);
  }

  /**
   * Returns the expression by which a server adds a lineage to what is stored.
   *
   * @param numbers the same as positions; null where these would not say all of it
   */
  static BsonDocument added(Lineage lineage, @Nullable BsonDocument numbers) {
    return numbers == null ? withPart(part(lineage)) : withLarger(numbers);
  }

  private static BsonDocument let(BsonDocument vars, BsonDocument in) {
    return Bson.doc("$let", Bson.doc("vars", vars, "in", in));
  }

  private static BsonDocument literal(BsonValue value) {
    return Bson.doc("$literal", value);
  }

  private static BsonDocument withPart(String text) {
    String full = part(Lineage.empty().marked(SIZE));
    BsonDocument vars =
        Bson.doc(
            "held",
            Bson.doc("$ifNull", Bson.list("$$whole.p", Bson.list())),
            "text",
            literal(new BsonString(text)),
            "full",
            literal(new BsonString(full)),
            "most",
            MOST_PARTS);
    BsonDocument merged =
        Bson.doc("$mergeObjects", Bson.list("$$whole", Bson.doc("p", let(vars, PARTS))));
    return let(Bson.doc("whole", HELD), merged);
  }

  /** Over the bound those positions go that no expression raised for the longest. */
  private static BsonDocument withLarger(BsonDocument numbers) {
    BsonDocument raised = new BsonDocument();
    BsonArray names = new BsonArray();
    for (Map.Entry<String, BsonValue> each : numbers.entrySet()) {
      names.add(new BsonString(each.getKey()));
      BsonArray both = Bson.list(literal(each.getValue()), "$_ap.l." + each.getKey());
      raised.append(each.getKey(), Bson.doc("$max", both));
    }
    int most = Numbers.MOST_LOGS - numbers.size();
    BsonDocument kept =
        Bson.doc("$arrayToObject", Bson.doc("$slice", Bson.list("$$others", -most)));
    BsonDocument logs = Bson.doc("l", Bson.doc("$mergeObjects", Bson.list(kept, raised)));
    BsonDocument areTooMany = Bson.doc("$gt", Bson.list(Bson.doc("$size", "$$others"), most));
    BsonDocument mark =
        Bson.doc("$cond", Bson.list(areTooMany, Bson.doc("d", true), new BsonDocument()));
    BsonDocument merged = Bson.doc("$mergeObjects", Bson.list(HELD, logs, mark));
    return let(Bson.doc("names", names), let(Bson.doc("others", OTHERS), merged));
  }

  /**
   * Returns the lineage stored with a value. Foreign and absent ones are empty: nothing is known of
   * who wrote the value.
   */
  static Stored found(BsonValue value, @Nullable BsonValue beside, String datastore) {
    if (beside instanceof BsonDocument field
        && field.size() == 1
        && field.get("w") instanceof BsonString whole) {
      int bar = whole.getValue().indexOf('|');
      String mark = bar < 0 ? PART : whole.getValue().substring(0, bar);
      if (!mark.equals(PART) && !mark.equals(digest(value))) {
        return new Stored(Lineage.empty(), Match.FOREIGN);
      }
    }
    return found(beside, datastore);
  }

  /** Returns the lineage in a field, whatever the value is. */
  static Stored found(@Nullable BsonValue beside, String datastore) {
    if (beside == null || beside.isNull()) {
      return new Stored(Lineage.empty(), Match.COMPANION_ABSENT);
    }
    if (beside.isString() || beside.isArray()) { // A tombstone, as the first drafts had it.
      BsonArray texts = beside.isArray() ? beside.asArray() : Bson.list(beside);
      return new Stored(texts(texts, datastore), Match.OWN);
    }
    if (!(beside instanceof BsonDocument field) || field.isEmpty()) {
      return unreadable(datastore);
    }
    Lineage lineage = Lineage.empty();
    for (Map.Entry<String, BsonValue> each : field.entrySet()) {
      BsonValue value = each.getValue();
      switch (each.getKey()) {
        case "w" -> lineage = lineage.merge(part(value, datastore));
        case "l" -> {
          Lineage logs = Numbers.lineage(value);
          lineage = lineage.merge(logs == null ? unreadable(datastore).lineage : logs);
        }
        case "p" -> lineage = lineage.merge(texts(value, datastore));
        case "d" -> lineage = lineage.marked(SIZE);
        case "b" -> {
          if (!value.isString()) {
            return unreadable(datastore);
          }
        }
        default -> {
          return unreadable(datastore);
        }
      }
    }
    return new Stored(lineage, Match.OWN);
  }

  private static Lineage texts(BsonValue parts, String datastore) {
    if (!parts.isArray()) {
      return unreadable(datastore).lineage;
    }
    List<Lineage> found = new ArrayList<>();
    parts.asArray().forEach(each -> found.add(part(each, datastore)));
    Lineage lineage = Lineage.empty().merge(found.toArray(Lineage[]::new));
    return found.size() > MOST_PARTS ? lineage.marked(SIZE) : lineage;
  }

  private static Lineage part(BsonValue part, String datastore) {
    String text = part.isString() ? part.asString().getValue() : "";
    int bar = text.indexOf('|');
    return bar < 0
        ? unreadable(datastore).lineage
        : LineageText.stored(datastore, text.substring(bar + 1));
  }

  private static Stored unreadable(String datastore) {
    return new Stored(LineageText.unreadable(datastore, "document_field"), Match.UNREADABLE);
  }

  /**
   * Returns the collection in which a document was inserted that an update made: what deletions
   * before it left there is part of its lineage. Null for another document.
   */
  static @Nullable String birthplace(BsonDocument document) {
    return Bson.at(document, FIELD, "b") instanceof BsonString mark
        ? mark.getValue().substring(mark.getValue().indexOf('.') + 1)
        : null;
  }
}
