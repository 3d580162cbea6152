package trainticket.insidepayment;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Makes refunds and shows them. */
@SpringBootApplication
public class InsidePaymentApplication {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(InsidePaymentApplication.class, args);
  }
}
