package trainticket.insidepayment;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;
import org.springframework.web.client.RestClient;

/** What was paid, by the payment service. */
@Component
class Payments {
  private final RestClient service;

  Payments(RestClient.Builder clients, @Value("${train-ticket.payment-url}") String url) {
    this.service = clients.baseUrl(url).build();
  }

  record Payment(long cents) {}

  long paid(String orderId) {
    return service
        .get()
        .uri("/api/v1/paymentservice/payment/{orderId}", orderId)
        .retrieve()
        .body(Payment.class)
        .cents();
  }
}
