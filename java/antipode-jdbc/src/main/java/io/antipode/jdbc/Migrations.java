package io.antipode.jdbc;

import io.antipode.ConfigurationException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The statements that a store's database needs, which its jar has as texts, and the program that
 * prints them.
 */
public final class Migrations {
  private static final String BETWEEN = ";\n\n";

  private final Class<?> store;
  private final List<String> texts;

  /**
   * Knows the texts of a store.
   *
   * @param store in whose package they lie
   * @param texts those that need no name of a table
   */
  public Migrations(Class<?> store, String... texts) {
    this.store = store;
    this.texts = List.of(texts);
  }

  /** Returns the statements of one text. */
  public List<String> statements(String name) {
    try (InputStream text = store.getResourceAsStream(name + ".sql")) {
      if (text == null) {
        throw new IllegalStateException("the jar has no " + name + ".sql");
      }
      String all = new String(text.readAllBytes(), StandardCharsets.UTF_8).strip();
      return List.of(all.substring(0, all.length() - 1).split(BETWEEN, -1));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * Returns what lets a table keep lineages with its rows.
   *
   * @param table as messages name it
   * @param key the columns of its primary key
   * @param naming writes its names into a statement
   * @throws ConfigurationException if it has no primary key
   */
  public List<String> rows(String table, List<String> key, UnaryOperator<String> naming) {
    if (key.isEmpty()) {
      throw new ConfigurationException("'" + table + "' has no primary key");
    }
    return statements("rows").stream().map(naming).toList();
  }

  /** Returns the rows of a question, in the order of its columns. */
  public static List<List<String>> ask(
      Connection connection, String sql, @Nullable String... parameters) throws SQLException {
    try (PreparedStatement question = connection.prepareStatement(sql)) {
      for (int nth = 0; nth < parameters.length; nth++) {
        question.setString(nth + 1, parameters[nth]);
      }
      List<List<String>> rows = new ArrayList<>();
      try (ResultSet found = question.executeQuery()) {
        while (found.next()) {
          List<String> row = new ArrayList<>();
          for (int column = 1; column <= found.getMetaData().getColumnCount(); column++) {
            row.add(found.getString(column));
          }
          rows.add(row);
        }
      }
      return rows;
    }
  }

  /**
   * Prints what arguments name: texts, and tables as {@code [schema.]table(column,...)}.
   *
   * @param rows returns what a table needs, by its name and its key
   * @throws ConfigurationException if one names neither
   */
  public void print(String[] arguments, BiFunction<String, List<String>, List<String>> rows) {
    List<String> all = new ArrayList<>();
    for (String each : arguments) {
      all.addAll(texts.contains(each) ? statements(each) : described(each, rows));
    }
    System.out.println(String.join(BETWEEN, all) + ";");
  }

  private List<String> described(
      String table, BiFunction<String, List<String>, List<String>> rows) {
    int open = table.indexOf('(');
    if (open < 0 || !table.endsWith(")")) {
      throw new ConfigurationException(
          "'" + table + "' is none of " + String.join(", ", texts) + ", and table(column,...)");
    }
    String[] key = table.substring(open + 1, table.length() - 1).split(",", -1);
    return rows.apply(
        table.substring(0, open),
        Arrays.stream(key).map(String::strip).filter(each -> !each.isEmpty()).toList());
  }
}
