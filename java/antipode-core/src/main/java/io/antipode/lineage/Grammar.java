package io.antipode.lineage;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Objects;

/** Numbers, tokens and packed bytes: what the items of a text are made of. */
final class Grammar {
  private static final int UUID_LENGTH = 36;
  private static final int UUID_BASE64 = 22;
  private static final int MAX_DIGITS = 13;

  private Grammar() {}

  // Characters.

  static boolean isAlphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  }

  static boolean isCharacter(char c) {
    return isAlphanumeric(c) || c == '.' || c == '_' || c == '-';
  }

  static boolean isHex(String text) {
    return text.chars().allMatch(c -> (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
  }

  /** Whether a text begins as one of another major version does. */
  static boolean isForeign(String text) {
    if (text.isEmpty()) {
      return false;
    }
    char first = text.charAt(0);
    return first >= '0' && first <= '9' && first != '1';
  }

  static boolean isKnownKind(char kind) {
    return "uUrRkKipozh".indexOf(kind) >= 0;
  }

  // What values may hold.

  static void requireText(String text, String what) {
    Objects.requireNonNull(text, what);
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (Character.isHighSurrogate(c)
          && i + 1 < text.length()
          && Character.isLowSurrogate(text.charAt(i + 1))) {
        i++;
      } else if (Character.isSurrogate(c)) {
        throw new IllegalArgumentException(what + " has a lone surrogate at " + i);
      }
    }
  }

  static void requireName(String datastore) {
    requireText(datastore, "datastore");
    if (datastore.isEmpty()) {
      throw new IllegalArgumentException("a datastore has a name");
    }
  }

  static String requireUnknown(String item) {
    Objects.requireNonNull(item, "item");
    boolean carried = item.startsWith("z");
    for (int i = 0; i < item.length(); i++) {
      char c = item.charAt(i);
      if (!isCharacter(c) && !(carried && c == '~')) {
        throw new IllegalArgumentException("an item has no " + Character.getName(c));
      }
    }
    if (carried ? !isCarried(item) : item.isEmpty() || isKnownKind(item.charAt(0))) {
      throw new IllegalArgumentException("not an item of an unknown kind: " + item);
    }
    return item;
  }

  // Carried texts.

  static String carried(String foreign) {
    long tildes = foreign.chars().filter(c -> c == '~').count();
    return "z" + number(tildes) + "." + foreign;
  }

  /** Whether an item of kind {@code z} counts its tildes right and carries a foreign text. */
  static boolean isCarried(String item) {
    int dot = item.indexOf('.');
    return dot >= 0
        && isForeign(item.substring(dot + 1))
        && item.equals(carried(item.substring(dot + 1)));
  }

  // Numbers.

  static String number(long value) {
    return Long.toUnsignedString(value, 36);
  }

  static long number(String text) throws Malformed {
    if (!isNumber(text)) {
      throw new Malformed("not a number: " + excerpt(text));
    }
    try {
      return Long.parseUnsignedLong(text, 36);
    } catch (NumberFormatException tooLarge) {
      throw new Malformed("a number of more than 64 bits");
    }
  }

  static boolean isNumber(String text) {
    if (text.isEmpty() || text.length() > MAX_DIGITS) {
      return false;
    }
    if (text.charAt(0) == '0') {
      return text.length() == 1;
    }
    return text.chars().allMatch(c -> (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'));
  }

  // Tokens.

  static String token(String text) {
    return token(text, false);
  }

  static String last(String text) {
    return token(text, true);
  }

  private static String token(String text, boolean dotted) {
    if (isLiteral(text, dotted)) {
      return text;
    }
    if (!text.isEmpty() && isLiteral(text.substring(1), dotted)) {
      if (text.charAt(0) == '@') {
        return "--" + text.substring(1);
      }
      if (text.charAt(0) == '~') {
        return "-_" + text.substring(1);
      }
    }
    return "-" + base64(text.getBytes(StandardCharsets.UTF_8));
  }

  static String parseToken(String token) throws Malformed {
    return parseToken(token, false);
  }

  static String parseLast(String token) throws Malformed {
    return parseToken(token, true);
  }

  private static String parseToken(String token, boolean dotted) throws Malformed {
    if (isLiteral(token, dotted)) {
      return token;
    }
    if (!token.startsWith("-")) {
      throw new Malformed("not a token: " + excerpt(token));
    }
    if (token.startsWith("--") || token.startsWith("-_")) {
      String literal = token.substring(2);
      if (!isLiteral(literal, dotted)) {
        throw new Malformed("no literal after a sigil: " + excerpt(token));
      }
      return (token.charAt(1) == '-' ? "@" : "~") + literal;
    }
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .decode(ByteBuffer.wrap(bytes(token.substring(1))))
          .toString();
    } catch (CharacterCodingException notText) {
      throw new Malformed("base64 of no UTF-8: " + excerpt(token));
    }
  }

  static String parseName(String token) throws Malformed {
    String name = parseToken(token);
    if (name.isEmpty()) {
      throw new Malformed("a datastore without a name");
    }
    return name;
  }

  private static boolean isLiteral(String text, boolean dotted) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean fits = isAlphanumeric(c) || c == '_' || (dotted && c == '.') || (i > 0 && c == '-');
      if (!fits) {
        return false;
      }
    }
    return !text.isEmpty();
  }

  // Bytes.

  static String base64(byte[] bytes) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  static byte[] bytes(String base64) throws Malformed {
    byte[] bytes;
    try {
      bytes = Base64.getUrlDecoder().decode(base64);
    } catch (IllegalArgumentException notBase64) {
      throw new Malformed("not base64: " + excerpt(base64));
    }
    if (!base64(bytes).equals(base64)) {
      throw new Malformed("base64 of another spelling: " + excerpt(base64));
    }
    return bytes;
  }

  static String packedHex(String hex) {
    byte[] bytes = new byte[hex.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(hex, 2 * i, 2 * i + 2, 16);
    }
    return base64(bytes);
  }

  static String hex(String base64, int length) throws Malformed {
    byte[] bytes = bytes(base64);
    if (bytes.length != length) {
      throw new Malformed("not base64 of " + length + " bytes: " + excerpt(base64));
    }
    StringBuilder hex = new StringBuilder(2 * length);
    for (byte one : bytes) {
      hex.append(Character.forDigit((one >> 4) & 15, 16)).append(Character.forDigit(one & 15, 16));
    }
    return hex.toString();
  }

  // Keys that are UUIDs, or begin with one.

  static boolean isPackedUuid(String key) {
    if (key.length() < UUID_LENGTH) {
      return false;
    }
    for (int i = 0; i < key.length(); i++) {
      char c = key.charAt(i);
      boolean fits;
      if (i >= UUID_LENGTH) {
        fits = isAlphanumeric(c) || c == '_' || c == '/' || c == ':';
      } else if (i == 8 || i == 13 || i == 18 || i == 23) {
        fits = c == '-';
      } else {
        fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      }
      if (!fits) {
        return false;
      }
    }
    return true;
  }

  static String packedUuid(String key) {
    String suffix = key.substring(UUID_LENGTH).replace('/', '.').replace(':', '-');
    return packedHex(key.substring(0, UUID_LENGTH).replace("-", "")) + suffix;
  }

  static String parseUuid(String packed) throws Malformed {
    if (packed.length() < UUID_BASE64) {
      throw new Malformed("not a UUID: " + excerpt(packed));
    }
    String hex = hex(packed.substring(0, UUID_BASE64), 16);
    String suffix = packed.substring(UUID_BASE64).replace('.', '/').replace('-', ':');
    return String.join(
        "-",
        hex.substring(0, 8),
        hex.substring(8, 12),
        hex.substring(12, 16),
        hex.substring(16, 20),
        hex.substring(20) + suffix);
  }

  static String excerpt(String text) {
    return text.length() <= 60 ? "'" + text + "'" : "'" + text.substring(0, 60) + "...'";
  }
}
