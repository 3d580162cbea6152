package io.antipode.reader;

import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** What it answers: a post, or that there is none here. */
@RestController
class Posts {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private final JdbcTemplate database;
  private final TransactionTemplate transaction;

  Posts(JdbcTemplate database, TransactionTemplate transaction) {
    this.database = database;
    this.transaction = transaction;
  }

  @GetMapping("/early/{id}")
  ResponseEntity<String> early(@PathVariable String id) {
    return read(id);
  }

  /** Reads in a transaction, whose first statement waits on its own connection. */
  @GetMapping("/posts/{id}")
  ResponseEntity<String> post(@PathVariable String id) {
    Barriers.barrier(BarrierOptions.timeout(PATIENCE).atRead());
    return Objects.requireNonNull(transaction.execute(status -> read(id)));
  }

  private ResponseEntity<String> read(String id) {
    List<String> found =
        database.queryForList("SELECT body FROM posts WHERE id = ?", String.class, id);
    return found.isEmpty() ? ResponseEntity.notFound().build() : ResponseEntity.ok(found.get(0));
  }
}
