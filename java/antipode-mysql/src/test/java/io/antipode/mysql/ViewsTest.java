package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What is asked about views that may write, and what is remembered of it. */
class ViewsTest {
  private static final String LISTED = "information_schema.VIEWS";

  private final List<String> asked = new ArrayList<>();

  /** A server with a view that writes. */
  private List<Map<String, String>> server(String sql) {
    asked.add(sql);
    if (sql.contains(LISTED)) {
      return List.of(Map.of("name", "Writing"));
    }
    boolean isView = sql.endsWith("`writing`");
    String text = "CREATE VIEW `writing` AS select `app`.`fresh`() AS `n`";
    return List.of(isView ? Map.of("Create View", text) : Map.of("Create Table", "CREATE TABLE"));
  }

  private boolean mayWrite(Views views, String sql) throws SQLException {
    return views.mayWrite(sql, Flavor.MYSQL, Set.of(), this::server);
  }

  /** Names of a connection are asked about once, and again where one may stand for another. */
  @Test
  void aNameIsAskedAboutOnce() throws SQLException {
    Views views = new Views(Listing.ANYTHING);
    assertThat(mayWrite(views, "SELECT * FROM writing, kept")).isTrue();
    assertThat(mayWrite(views, "SELECT * FROM kept")).isFalse();
    assertThat(asked).hasSize(2);
    views.forget(false);
    assertThat(mayWrite(views, "SELECT * FROM kept")).isFalse();
    assertThat(asked).hasSize(3);
  }

  /** One question, for all connections, says which names are views; they alone are asked about. */
  @Test
  void aTableIsNotAskedAboutWhereTheViewsAreKnown() throws SQLException {
    Listing listing = new Listing();
    for (int connection = 0; connection < 2; connection++) {
      Views views = new Views(listing);
      assertThat(mayWrite(views, "SELECT * FROM kept")).isFalse();
      assertThat(mayWrite(views, "SELECT * FROM app.writing")).isTrue();
    }
    assertThat(asked).hasSize(3).filteredOn(sql -> sql.contains(LISTED)).hasSize(1);
  }

  /** Nobody has to ask where there are none, until something is defined. */
  @Test
  void aServerWithoutViewsIsAskedOnce() throws SQLException {
    Listing listing = new Listing();
    assertThat(listing.isEmpty()).isFalse();
    Views views = new Views(listing);
    assertThat(views.mayWrite("TABLE kept", Flavor.MYSQL, Set.of(), sql -> List.of())).isFalse();
    assertThat(listing.isEmpty()).isTrue();
    views.forget(false);
    assertThat(listing.isEmpty()).isTrue();
    views.forget(true);
    assertThat(listing.isEmpty()).isFalse();
    assertThat(listing.isStale()).isTrue();
  }

  /** A refusal, or more views than are remembered, says nothing of any name; a loss is an error. */
  @Test
  void whoMayNotSeeTheViewsAsksAboutEachName() throws SQLException {
    Listing.Asked refusing =
        sql -> {
          if (sql.contains(LISTED)) {
            throw new SQLException("denied", "42000", 1142);
          }
          return server(sql);
        };
    Listing.Asked many =
        sql ->
            sql.contains(LISTED)
                ? IntStream.range(0, 1_024).mapToObj(nth -> Map.of("name", "v" + nth)).toList()
                : server(sql);
    for (Listing.Asked each : List.of(refusing, many)) {
      Views views = new Views(new Listing());
      assertThat(views.mayWrite("TABLE writing", Flavor.MYSQL, Set.of(), each)).isTrue();
      assertThat(views.mayWrite("TABLE kept", Flavor.MYSQL, Set.of(), each)).isFalse();
    }
    Listing.Asked lost =
        sql -> {
          throw new SQLException("gone", "08S01", 0);
        };
    Views views = new Views(new Listing());
    assertThatThrownBy(() -> views.mayWrite("TABLE kept", Flavor.MYSQL, Set.of(), lost))
        .isInstanceOf(SQLException.class);
  }
}
