package trainticket.user;

import java.util.List;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** Finds users, and checks their passwords. */
@RestController
class Users {
  private final JdbcClient database;

  Users(JdbcClient database) {
    this.database = database;
  }

  record User(String id, String name, String email) {}

  record Credentials(String name, String password) {}

  @GetMapping("/api/v1/userservice/users/{id}")
  ResponseEntity<User> user(@PathVariable String id) {
    return ResponseEntity.of(
        database
            .sql("SELECT id, name, email FROM users WHERE id = ?")
            .param(id)
            .query(User.class)
            .optional());
  }

  @PostMapping("/api/v1/userservice/users/check")
  ResponseEntity<User> check(@RequestBody Credentials given) {
    List<User> found =
        database
            .sql("SELECT id, name, email FROM users WHERE name = ? AND password = SHA2(?, 256)")
            .params(given.name(), given.password())
            .query(User.class)
            .list();
    return found.isEmpty() ? ResponseEntity.notFound().build() : ResponseEntity.ok(found.get(0));
  }
}
