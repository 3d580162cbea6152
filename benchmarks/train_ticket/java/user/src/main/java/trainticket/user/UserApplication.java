package trainticket.user;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Says who the users are. */
@SpringBootApplication
public class UserApplication {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(UserApplication.class, args);
  }
}
