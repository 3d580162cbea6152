package trainticket.insidepayment;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.RestClient;

/** What was paid, by the payment service. */
@Component
class Payments {
  private final RestClient service;

  Payments(RestClient.Builder clients, @Value("${train-ticket.payment-url}") String url) {
    this.service = clients.baseUrl(url).build();
  }

  record Payment(long cents) {}

  /** Returns how many cents were paid for an order: none for one that is not paid. */
  long paid(String orderId) {
    try {
      return service
          .get()
          .uri("/api/v1/paymentservice/payment/{orderId}", orderId)
          .retrieve()
          .body(Payment.class)
          .cents();
    } catch (HttpClientErrorException.NotFound unpaid) {
      return 0;
    }
  }
}
