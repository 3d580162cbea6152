package io.antipode.dynamodb;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/**
 * A statement of PartiQL that writes one item: an {@code INSERT} of a map, an {@code UPDATE} or a
 * {@code DELETE} whose {@code WHERE} compares the key for equality. Whatever else it has stays as
 * it is.
 *
 * @param text as the application gave it
 * @param table its name
 * @param values of attributes: those of the item that it inserts, or those that its item is
 *     compared with
 * @param isDeletion whether it deletes its item, and so sets no stamp
 * @param at where the stamp is set
 * @param isInsertion whether the stamp is the first attribute of a map
 */
record Statement(
    String text,
    String table,
    Map<String, AttributeValue> values,
    boolean isDeletion,
    int at,
    boolean isInsertion) {
  private static final List<String> KINDS = List.of("text", "name", "word", "number", "mark");

  private static final Pattern TOKEN =
      Pattern.compile(
          """
          \\s*(?:(?<text>'(?:[^']|'')*+')
          |(?<name>"(?:[^"]|"")*+")
          |(?<word>[A-Za-z_]\\w*)
          |(?<number>[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?)
          |(?<mark>\\?)
          |(?<sign><<|>>|<=|>=|<>|!=|[{}\\[\\](),:=<>.*+/|-]))""",
          Pattern.COMMENTS | Pattern.UNICODE_CHARACTER_CLASS);

  private static final Set<String> OPENING = Set.of("{", "[", "(", "<<");
  private static final Set<String> CLOSING = Set.of("}", "]", ")", ">>");

  /** What is no text, no number and no parameter: no part of a key. */
  private static final AttributeValue OTHER = AttributeValue.fromNul(true);

  /** A comparison of an attribute with a value. */
  private static final int COMPARED = 3;

  /** What is no part of any statement that is understood. */
  private static final String UNKNOWN = "unknown";

  /**
   * A part of a statement.
   *
   * @param kind a group of the pattern
   * @param text as it is written
   * @param start where it begins
   * @param depth how many brackets it is in
   * @param marks how many placeholders come before it
   */
  private record Token(String kind, String text, int start, int depth, int marks) {
    boolean is(String word) {
      return text.equalsIgnoreCase(word);
    }

    /** Returns the table or attribute that it names; null where it names none. */
    @Nullable String named() {
      return switch (kind) {
        case "text", "name" -> unquoted();
        case "word" -> text;
        default -> null;
      };
    }

    private String unquoted() {
      String quote = text.substring(0, 1);
      return text.substring(1, text.length() - 1).replace(quote + quote, quote);
    }

    /** Returns its keyword outside of brackets; empty where it is none. */
    String keyword() {
      return kind.equals("word") && depth == 0 ? text.toUpperCase(Locale.ROOT) : "";
    }

    AttributeValue value(List<AttributeValue> parameters) {
      return switch (kind) {
        case "mark" -> marks < parameters.size() ? parameters.get(marks) : OTHER;
        case "text" -> AttributeValue.fromS(unquoted());
        case "number" -> AttributeValue.fromN(text);
        default -> OTHER;
      };
    }
  }

  /**
   * Returns what a statement writes; null where it is not understood, or reads.
   *
   * @param parameters the values of its placeholders
   */
  static @Nullable Statement parse(@Nullable String text, List<AttributeValue> parameters) {
    if (text == null) {
      return null;
    }
    List<Token> tokens = tokens(text);
    if (tokens.size() < COMPARED || tokens.get(tokens.size() - 1).kind.equals(UNKNOWN)) {
      return null;
    }
    Token verb = tokens.get(0);
    Token second = tokens.get(1);
    if (verb.is("INSERT") && second.is("INTO")) {
      return insertion(text, tokens, parameters);
    }
    Token third = tokens.get(2);
    if (verb.is("UPDATE") && (third.is("SET") || third.is("REMOVE"))) {
      return change(text, tokens, parameters, second, third.start);
    }
    return verb.is("DELETE")
            && second.is("FROM")
            && tokens.size() > COMPARED
            && tokens.get(COMPARED).is("WHERE")
        ? change(text, tokens, parameters, third, 0)
        : null;
  }

  /** Returns the index that {@code FROM "table"."index"} names; null where it reads none. */
  static @Nullable String indexOf(@Nullable String text) {
    List<Token> tokens = text == null ? List.of() : tokens(text);
    for (int at = 0; at + COMPARED < tokens.size(); at++) {
      if (tokens.get(at).kind.equals("word") && tokens.get(at).is("FROM")) {
        return tokens.get(at + 2).text.equals(".") ? tokens.get(at + 3).named() : null;
      }
    }
    return null;
  }

  /** Returns the parts of a statement; one that is not known is the last. */
  private static List<Token> tokens(String text) {
    List<Token> tokens = new ArrayList<>();
    Matcher matcher = TOKEN.matcher(text);
    int depth = 0;
    int marks = 0;
    int end = text.stripTrailing().length();
    for (int at = 0; at < end; at = matcher.end()) {
      if (!matcher.region(at, text.length()).lookingAt()) {
        tokens.add(new Token(UNKNOWN, "", at, depth, marks));
        return tokens;
      }
      String kind =
          KINDS.stream().filter(each -> matcher.group(each) != null).findFirst().orElse("sign");
      String part = matcher.group(kind);
      boolean isSign = kind.equals("sign");
      depth -= isSign && CLOSING.contains(part) ? 1 : 0;
      tokens.add(new Token(kind, part, matcher.start(kind), depth, marks));
      depth += isSign && OPENING.contains(part) ? 1 : 0;
      marks += kind.equals("mark") ? 1 : 0;
    }
    return tokens;
  }

  private static @Nullable Statement insertion(
      String text, List<Token> tokens, List<AttributeValue> parameters) {
    @Nullable String table = tokens.get(2).named();
    List<Token> rest = tokens.subList(COMPARED, tokens.size());
    if (rest.size() < COMPARED || !rest.get(0).is("VALUE") || !rest.get(1).text.equals("{")) {
      return null;
    }
    Token last = rest.get(rest.size() - 1);
    if (table == null || !last.text.equals("}") || last.depth != 0) {
      return null;
    }
    Map<String, AttributeValue> values = new HashMap<>();
    for (int at = 0; at < rest.size() - 2; at++) {
      @Nullable String name = rest.get(at).named();
      if (rest.get(at).depth == 1 && rest.get(at + 1).text.equals(":") && name != null) {
        values.put(name, rest.get(at + 2).value(parameters));
      }
    }
    // An item without attributes has no key: the service refuses it.
    return values.isEmpty() || !Collections.disjoint(values.keySet(), Stored.OURS)
        ? null
        : new Statement(text, table, values, false, rest.get(2).start, true);
  }

  private static @Nullable Statement change(
      String text, List<Token> tokens, List<AttributeValue> parameters, Token target, int at) {
    List<String> words = tokens.stream().map(Token::keyword).toList();
    @Nullable String table = target.named();
    if (table == null
        || Collections.frequency(words, "WHERE") != 1
        || words.contains("OR")
        || words.contains("NOT")
        || tokens.stream().map(Token::named).anyMatch(Statement::isOurs)) {
      return null;
    }
    int end = words.contains("RETURNING") ? words.indexOf("RETURNING") : tokens.size();
    Map<String, AttributeValue> values = new HashMap<>();
    int start = words.indexOf("WHERE") + 1;
    for (int each = start; each <= end; each++) {
      if (each == end || words.get(each).equals("AND")) {
        compared(tokens.subList(start, each), parameters, values);
        start = each + 1;
      }
    }
    return new Statement(text, table, values, at == 0, at, false);
  }

  private static boolean isOurs(@Nullable String name) {
    return name != null && Stored.OURS.contains(name);
  }

  /** Takes over the attribute that a condition compares for equality, with its value. */
  private static void compared(
      List<Token> condition, List<AttributeValue> parameters, Map<String, AttributeValue> values) {
    @Nullable String name =
        condition.size() == COMPARED && condition.get(1).text.equals("=")
            ? condition.get(0).named()
            : null;
    if (name != null) {
      values.put(name, condition.get(2).value(parameters));
    }
  }

  /** Returns its text, as one that sets a stamp, too. */
  String stamped(long stamp) {
    if (isDeletion) {
      return text;
    }
    String ours =
        isInsertion
            ? "'" + Stored.STAMP + "': " + stamp + ", "
            : "SET \"" + Stored.STAMP + "\" = " + stamp + " ";
    return text.substring(0, at) + ours + text.substring(at);
  }
}
