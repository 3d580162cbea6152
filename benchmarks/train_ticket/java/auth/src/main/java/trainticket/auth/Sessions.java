package trainticket.auth;

import java.time.Duration;
import java.util.UUID;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.RestClient;
import org.springframework.web.server.ResponseStatusException;

/** Sessions of users who are logged in. */
@RestController
class Sessions {
  private static final Duration LIFE = Duration.ofHours(1);

  private final StringRedisTemplate redis;
  private final RestClient users;

  Sessions(
      StringRedisTemplate redis,
      RestClient.Builder clients,
      @Value("${train-ticket.user-url}") String url) {
    this.redis = redis;
    this.users = clients.baseUrl(url).build();
  }

  record Credentials(String name, String password) {}

  record User(String id) {}

  record Session(String token, String userId) {}

  @PostMapping("/api/v1/users/login")
  Session login(@RequestBody Credentials given) {
    User user;
    try {
      user =
          users
              .post()
              .uri("/api/v1/userservice/users/check")
              .body(given)
              .retrieve()
              .body(User.class);
    } catch (HttpClientErrorException.NotFound unknown) {
      throw new ResponseStatusException(HttpStatus.UNAUTHORIZED, "wrong name or password");
    }
    String token = UUID.randomUUID().toString();
    redis.opsForValue().set("session:" + token, user.id(), LIFE);
    return new Session(token, user.id());
  }

  @GetMapping("/api/v1/auth/sessions/{token}")
  Session session(@PathVariable String token) {
    String userId = redis.opsForValue().get("session:" + token);
    if (userId == null) {
      throw new ResponseStatusException(HttpStatus.UNAUTHORIZED, "not logged in");
    }
    return new Session(token, userId);
  }
}
