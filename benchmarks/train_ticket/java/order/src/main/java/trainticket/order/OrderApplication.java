package trainticket.order;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Keeps orders. */
@SpringBootApplication
public class OrderApplication {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(OrderApplication.class, args);
  }
}
