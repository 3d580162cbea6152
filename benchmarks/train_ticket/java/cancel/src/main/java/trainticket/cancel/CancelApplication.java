package trainticket.cancel;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Cancels orders. */
@SpringBootApplication
public class CancelApplication {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(CancelApplication.class, args);
  }
}
