package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What is written without an id, by its text and by what the catalogue answers. */
class ElsewhereTest {
  @Test
  void theTablesThatATextChanges() {
    assertThat(Elsewhere.targets("INSERT INTO a VALUES (1); update only s.B set c = 1"))
        .containsExactlyInAnyOrder("a", "b");
    assertThat(Elsewhere.targets("WITH x AS (DELETE FROM \"My \"\"T\"\"\" RETURNING 1) SELECT 1"))
        .containsExactly("my \"t\"");
    assertThat(Elsewhere.targets("MERGE INTO d.s.t USING u ON true WHEN MATCHED THEN DO NOTHING"))
        .containsExactly("t");
    assertThat(Elsewhere.targets("TRUNCATE TABLE a")).containsExactly("a");
    assertThat(Elsewhere.targets("COPY \"s\".\"T\" FROM STDIN")).containsExactly("t");
    assertThat(Elsewhere.targets("SELECT a FROM t")).isEmpty();
  }

  @Test
  void whatIsSentByDblink() {
    assertThat(isSent("SELECT dblink_exec('a', 'DELETE FROM b')")).isTrue();
    assertThat(isSent("SELECT dblink('a', 'CALL b()')")).isTrue();
    assertThat(isSent("SELECT public.dblink_send_query('a', 'SELECT 1')")).isTrue();
    assertThat(isSent("SELECT * FROM dblink('a', $1) AS t(a int)")).isTrue();
    assertThat(isSent("SELECT * FROM dblink('a', ' select 1') AS t(a int)")).isFalse();
    assertThat(isSent("SELECT 'dblink_exec'")).isFalse();
    assertThat(Elsewhere.isSent("SELECT dblink('a', 'CALL b()')", Set.of("dblink"))).isFalse();
  }

  private static boolean isSent(String sql) {
    return Elsewhere.isSent(sql, Set.of());
  }

  /** A table of two servers lies elsewhere where one of them does. */
  @Test
  void whatTheCatalogueAnswers() {
    Elsewhere found =
        Elsewhere.of(
            List.of(
                Map.of("name", "here", "here", "t"),
                Map.of("name", "parts", "here", "t"),
                Map.of("name", "parts", "here", "f"),
                Map.of("name", "", "here", "t")));
    assertThat(found.byFunctions()).isTrue();
    assertThat(found.isAmong(Set.of("t", "here"))).isTrue();
    assertThat(found.isAmong(Set.of("t"))).isFalse();
    assertThat(found.writesAway(Set.of("here"))).isFalse();
    assertThat(found.writesAway(Set.of("here", "parts"))).isTrue();
    assertThat(Elsewhere.of(List.of()).byFunctions()).isFalse();
  }
}
