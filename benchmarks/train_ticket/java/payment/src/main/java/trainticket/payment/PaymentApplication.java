package trainticket.payment;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Says what was paid. */
@SpringBootApplication
public class PaymentApplication {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(PaymentApplication.class, args);
  }
}
