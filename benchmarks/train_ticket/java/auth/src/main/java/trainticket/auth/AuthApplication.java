package trainticket.auth;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Logs users in. */
@SpringBootApplication
public class AuthApplication {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(AuthApplication.class, args);
  }
}
