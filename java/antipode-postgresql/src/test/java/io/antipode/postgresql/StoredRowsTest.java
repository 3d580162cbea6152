package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.jdbc.ObservedRows;
import java.sql.ResultSet;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the text of a statement says of tables whose rows have lineages. No server is asked. */
class StoredRowsTest {
  private static final StoredTable ORDERS =
      new StoredTable("orders", "public", "orders", List.of("shop", "id"), List.of(25, 23));

  private static Mentions mentions(String sql) {
    return Mentions.of(sql, Set.of("orders"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          SELECT * FROM public."orders"                       | 1 | 1
          SELECT orders.id FROM orders FOR UPDATE OF orders   | 1 | 1
          SELECT 'orders' -- orders                           | 0 | 0
          UPDATE orders SET a = 1                             | 1 | 0
          DELETE FROM orders WHERE id IN (SELECT 1 FROM orders) | 2 | 1
          DO $$ BEGIN DELETE FROM orders; END $$              | 1 | 1
          SELECT * FROM my_orders, orders_old                 | 0 | 0
          SELECT 'a\\b' AS a, * FROM orders WHERE b <> 'y'     | 1 | 1
          """)
  void howOftenATableIsNamed(String sql, int all, int sources) {
    assertThat(mentions(sql).all().getOrDefault("orders", 0)).isEqualTo(all);
    assertThat(mentions(sql).sources().getOrDefault("orders", 0)).isEqualTo(sources);
  }

  @Test
  void whatAnInsertReturnsIsItsOwn() {
    assertThat(mentions("INSERT INTO orders VALUES (1) RETURNING *").isOwn()).isTrue();
    assertThat(mentions("INSERT INTO orders VALUES (1); DELETE FROM orders").isOwn()).isFalse();
    assertThat(mentions("INSERT INTO orders VALUES (1) ON CONFLICT DO NOTHING").isOwn()).isFalse();
  }

  @Test
  void whatTheSessionIsToldMayEnd() {
    assertThat(mentions("DISCARD ALL").forgets()).isTrue();
    assertThat(mentions("/* a */ ROLLBACK TO SAVEPOINT a").goesBack()).isTrue();
    assertThat(mentions("SELECT 'DISCARD ROLLBACK'")).isEqualTo(mentions("SELECT 1"));
  }

  /** Before a table is made nobody can ask what it lacks. */
  @Test
  void definitionsNeedNoTable() {
    assertThat(mentions("/* a */ create table orders (id int)").defines()).isTrue();
    assertThat(mentions("INSERT INTO orders VALUES ('CREATE')").defines()).isFalse();
  }

  private static Sought sought(String condition, Map<Integer, Object> parameters) {
    return Sought.of("SELECT 1 FROM orders WHERE " + condition, parameters, ORDERS);
  }

  @Test
  void everyCombinationOfValuesIsSought() {
    assertThat(sought("o.shop IN ('a', ?) AND \"id\" = '01' -- id = 7", Map.of(1, "b")))
        .isEqualTo(new Sought(List.of(List.of("a", "1"), List.of("b", "1")), true));
    assertThat(sought("id = 1", Map.of())).isEqualTo(new Sought(List.of(), true));
    Sought many = sought("shop = 'a' AND id IN (0" + ", 1".repeat(2_000) + ")", Map.of());
    assertThat(many.keys()).hasSize(Sought.MOST);
    assertThat(many.isAll()).isFalse();
  }

  /** Question marks that are no parameters move none of them. */
  @Test
  void parametersAreThoseOfTheDriver() {
    String others = "a = $$?$$ AND b = E'\\'?' AND c ?? 'd' /* ? */ AND e = $t$ $$ ? $t$ AND ";
    Sought found = sought(others + "shop = ? AND id = ?", Map.of(1, "x", 2, 7L));
    assertThat(found).isEqualTo(new Sought(List.of(List.of("x", "7")), true));
  }

  /** What cannot be read is said to be missing. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "shop = 'a' AND id = ? AND b = ?",
        "shop = 'a' AND id = 'b'",
        "shop = 'a' AND id = 1 + 1",
        "shop = E'a' AND id = 1",
        "shop IN (lower('A'), 'b') AND id = 1",
      })
  void otherValuesAreUnknown(String condition) {
    assertThat(sought(condition, Map.of(1, 1)).isAll()).isFalse();
  }

  @Test
  void whatNobodyIsEqualToIsNotSought() {
    Map<Integer, Object> parameters = Map.of(1, Sent.NULL, 2, new byte[0]);
    assertThat(sought("shop = 'a' AND id = ? AND b = ?", parameters))
        .isEqualTo(new Sought(List.of(), true));
    assertThat(sought("shop = 'a' AND b = ? AND id = ?", parameters).isAll()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "' 01', 23, 1",
    "+7, 20, 7",
    "1.0, 20,",
    "t, 16, true",
    "off, 16, false",
    "{A0EEBC99-9C0B4EF8BB6D-6BB9BD380A11}, 2950, a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "1-2-3-4-5, 2950,",
    "' a', 25, ' a'",
  })
  void keysAreSpelledAsTheServerHasThem(String value, int type, @Nullable String spelled) {
    assertThat(Sought.spelled(value, type)).isEqualTo(spelled);
  }

  /** The application reads a row as it is by now, which somebody may have written since. */
  @Test
  void aRowThatIsRefreshedIsSeenAgain() throws Throwable {
    List<Boolean> moves = new ArrayList<>();
    ObservedRows rows =
        new ObservedRows((proxy, method, args) -> null) {
          @Override
          protected void moved(boolean isThere) {
            boolean unused = moves.add(isThere);
          }
        };
    for (String name : List.of("refreshRow", "getRow", "next")) {
      Object unused = rows.invoke(rows, ResultSet.class.getMethod(name), null);
    }
    assertThat(moves).containsExactly(true, false);
  }

  /** Nothing that a user may send keeps the client busy, or fills its stack. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "'",
        "\"",
        "(",
        "id = ",
        "id IN (1, ",
        "/*",
        "INSERT INTO ",
        "orders ",
        "$a$",
        "$a",
        "$$",
        "a."
      })
  void longTextsTakeLinearTime(String unit) {
    String sql = "INSERT INTO orders " + unit.repeat(20_000);
    Assertions.assertTimeout(
        Duration.ofSeconds(20),
        () -> {
          assertThat(Statements.effects("SELECT " + sql, Set.of())).isNotNull();
          assertThat(mentions(sql)).isNotNull();
          assertThat(Sought.of(sql, Map.of(), ORDERS)).isNotNull();
        });
  }
}
