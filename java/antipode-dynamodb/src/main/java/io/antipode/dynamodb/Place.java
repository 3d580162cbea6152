package io.antipode.dynamodb;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What the key of a write names.
 *
 * @param item the item
 * @param region where it was written
 */
record Place(Item item, String region) {
  private static final Pattern REGION = Pattern.compile("[a-z0-9-]+");
  private static final Pattern TABLE = Pattern.compile("[A-Za-z0-9_.-]+");

  /** Returns the item and the region of a write's key; null where it names none. */
  static @Nullable Place parse(String key) {
    int at = key.lastIndexOf('@');
    int slash = key.indexOf('/');
    if (slash < 0 || at < slash) {
      return null;
    }
    String table = key.substring(0, slash);
    String region = key.substring(at + 1);
    if (!TABLE.matcher(table).matches() || !REGION.matcher(region).matches()) {
      return null;
    }
    List<Item.Attribute> attributes = new ArrayList<>();
    for (String pair : key.substring(slash + 1, at).split(",", -1)) {
      Item.@Nullable Attribute attribute = Item.Attribute.parse(pair);
      if (attribute == null) {
        return null;
      }
      attributes.add(attribute);
    }
    return new Place(new Item(table, attributes), region);
  }
}
