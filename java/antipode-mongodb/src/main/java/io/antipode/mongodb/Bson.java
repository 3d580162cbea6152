package io.antipode.mongodb;

import java.util.ArrayList;
import java.util.List;
import org.bson.BsonArray;
import org.bson.BsonBoolean;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonString;
import org.bson.BsonTimestamp;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/** Documents as they are written in commands, and what lies at paths of replies. */
final class Bson {
  static final BsonInt32 ONE = new BsonInt32(1);

  private Bson() {}

  /** Returns a document of names and values in turn. */
  static BsonDocument doc(Object... pairs) {
    BsonDocument document = new BsonDocument();
    for (int nth = 0; nth < pairs.length; nth += 2) {
      document.append((String) pairs[nth], value(pairs[nth + 1]));
    }
    return document;
  }

  static BsonArray list(Object... values) {
    List<BsonValue> items = new ArrayList<>();
    for (Object each : values) {
      items.add(value(each));
    }
    return new BsonArray(items);
  }

  private static BsonValue value(Object value) {
    if (value instanceof BsonValue made) {
      return made;
    }
    if (value instanceof String text) {
      return new BsonString(text);
    }
    if (value instanceof Integer number) {
      return new BsonInt32(number);
    }
    return BsonBoolean.valueOf((Boolean) value);
  }

  /** Returns what lies at a path of names; null where there is nothing. */
  static @Nullable BsonValue at(BsonDocument document, String... path) {
    BsonValue found = document;
    for (String name : path) {
      found = found instanceof BsonDocument held ? held.get(name) : null;
    }
    return found;
  }

  static BsonDocument docAt(BsonDocument document, String... path) {
    return at(document, path) instanceof BsonDocument found ? found : new BsonDocument();
  }

  /** Returns the integer at a path; null where there is none. */
  static @Nullable Long integerAt(BsonDocument document, String... path) {
    BsonValue found = at(document, path);
    return found != null && found.isNumber() ? Long.valueOf(found.asNumber().longValue()) : null;
  }

  /** Returns the timestamp at a path as one integer that is ordered alike; null where none is. */
  static @Nullable Long stampAt(BsonDocument document, String... path) {
    return at(document, path) instanceof BsonTimestamp found
        ? Long.valueOf(found.getValue())
        : null;
  }

  static String textAt(BsonDocument document, String... path) {
    return at(document, path) instanceof BsonString found ? found.getValue() : "";
  }

  /** Returns whether there is true, or a number other than zero, at a path. */
  static boolean isTrueAt(BsonDocument document, String... path) {
    BsonValue found = at(document, path);
    if (found instanceof BsonBoolean bool) {
      return bool.getValue();
    }
    return found != null && found.isNumber() && found.asNumber().doubleValue() != 0;
  }

  /** Returns the documents of the list at a path. */
  static List<BsonDocument> docsAt(BsonDocument document, String... path) {
    if (!(at(document, path) instanceof BsonArray list)) {
      return List.of();
    }
    return list.stream()
        .filter(BsonDocument.class::isInstance)
        .map(BsonDocument.class::cast)
        .toList();
  }
}
