package io.antipode.dynamodb;

import java.math.BigDecimal;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/**
 * An item by its primary key.
 *
 * @param table the table's name
 * @param key the attributes of the key, sorted by their names
 */
record Item(String table, List<Attribute> key) {
  /** A number's digits before or after its point, of which DynamoDB has 38 and 130 zeros. */
  private static final int LONGEST_NUMBER = 38 + 130;

  private static final Pattern ESCAPED = Pattern.compile("[%,=]|^[#*]");

  /**
   * An attribute of a key.
   *
   * @param type {@code S}, {@code N} or {@code B}
   * @param value a text, a number in its shortest form, or bytes in Base64
   */
  record Attribute(String name, char type, String value) {
    private AttributeValue wire() {
      return switch (type) {
        case 'N' -> AttributeValue.fromN(value);
        case 'B' -> AttributeValue.fromB(SdkBytes.fromByteArray(Base64.getDecoder().decode(value)));
        default -> AttributeValue.fromS(value);
      };
    }

    private String named() {
      return escaped(name)
          + "="
          + switch (type) {
            case 'N' -> "#" + value;
            case 'B' ->
                "*" + Base64.getUrlEncoder().withoutPadding().encodeToString(decoded(value));
            default -> escaped(value);
          };
    }

    private static byte[] decoded(String value) {
      return Base64.getDecoder().decode(value);
    }

    /** Returns what {@code name=value} is in the name of an item; null where it is nothing. */
    static @Nullable Attribute parse(String pair) {
      int equals = pair.indexOf('=');
      if (equals <= 0 || equals == pair.length() - 1) {
        return null;
      }
      String text = pair.substring(equals + 1);
      try {
        String name = unescaped(pair.substring(0, equals));
        return switch (text.charAt(0)) {
          case '#' -> numbered(name, text.substring(1));
          case '*' -> {
            byte[] bytes = Base64.getUrlDecoder().decode(text.substring(1));
            yield new Attribute(name, 'B', Base64.getEncoder().encodeToString(bytes));
          }
          default -> new Attribute(name, 'S', unescaped(text));
        };
      } catch (IllegalArgumentException error) { // Of another library, or damaged.
        return null;
      }
    }
  }

  Item {
    key = List.copyOf(key);
  }

  /**
   * Returns the item of a table whose key has some values.
   *
   * @param table its name, or its ARN
   * @param names of the key's attributes among the values
   * @return null where one of them is missing or is no value of a key
   */
  static @Nullable Item of(
      String table, Map<String, AttributeValue> values, Collection<String> names) {
    List<Attribute> key = new ArrayList<>();
    for (String name : names.stream().sorted(Item::compareNames).toList()) {
      @Nullable AttributeValue value = values.get(name);
      @Nullable Attribute attribute = value == null ? null : attribute(name, value);
      if (attribute == null) {
        return null;
      }
      key.add(attribute);
    }
    return key.isEmpty() ? null : new Item(tableName(table), key);
  }

  /** Returns the item whose key it is; null where it is none. */
  static @Nullable Item of(String table, Map<String, AttributeValue> key) {
    return of(table, key, key.keySet());
  }

  /** Compares by code points, as other languages do. */
  private static int compareNames(String one, String other) {
    return Arrays.compareUnsigned(
        one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
  }

  private static @Nullable Attribute attribute(String name, AttributeValue value) {
    return switch (value.type()) {
      case S -> new Attribute(name, 'S', value.s());
      case N -> numbered(name, value.n());
      case B ->
          new Attribute(
              name, 'B', Base64.getEncoder().encodeToString(value.b().asByteArrayUnsafe()));
      default -> null;
    };
  }

  private static @Nullable Attribute numbered(String name, String text) {
    String number = number(text);
    return number == null ? null : new Attribute(name, 'N', number);
  }

  /** Returns the name of a table that may be given by its ARN. */
  static String tableName(String table) {
    int arn = table.lastIndexOf(":table/");
    String name = arn < 0 ? table : table.substring(arn + ":table/".length());
    int more = name.indexOf('/');
    return more < 0 ? name : name.substring(0, more);
  }

  /** Returns a number in its shortest form, so that two equal ones are one key; null for none. */
  private static @Nullable String number(String text) {
    BigDecimal number;
    try {
      number = new BigDecimal(text);
    } catch (NumberFormatException error) {
      return null;
    }
    long exponent = (long) number.precision() - number.scale() - 1;
    if (number.signum() == 0) {
      return "0";
    }
    return Math.abs(exponent) > LONGEST_NUMBER ? null : number.stripTrailingZeros().toPlainString();
  }

  /** Returns the key as a request has it. */
  Map<String, AttributeValue> wire() {
    Map<String, AttributeValue> wire = new HashMap<>();
    key.forEach(each -> wire.put(each.name, each.wire()));
    return wire;
  }

  /** Returns the names of the attributes of its key. */
  List<String> names() {
    return key.stream().map(Attribute::name).toList();
  }

  /** Returns its name in a lineage, as something that was written in a region. */
  String named(String region) {
    return table
        + "/"
        + key.stream().map(Attribute::named).collect(Collectors.joining(","))
        + "@"
        + region;
  }

  private static String escaped(String text) {
    return ESCAPED
        .matcher(text)
        .replaceAll(found -> "%%%02X".formatted((int) found.group().charAt(0)));
  }

  private static String unescaped(String text) {
    // A plus sign is one.
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }
}
