package trainticket.insidepayment;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.request.ScopeBlock;
import io.antipode.testing.AntipodeDryRun;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.web.client.RestClient;

/**
 * The look-up of a refund, as production runs it: it reads from a replica.
 *
 * <p>The class fails where the read has no barrier. It needs MongoDB at {@code
 * spring.data.mongodb.uri}: one server is enough, and nothing has to be late.
 */
// --8<-- [start:test]
@AntipodeDryRun
@SpringBootTest(
    webEnvironment = WebEnvironment.RANDOM_PORT,
    properties = {
      "antipode.mongodb.reads-from=replica",
      "train-ticket.makes-refunds=false",
      "train-ticket.refunds-queue=refunds",
      "train-ticket.notifications-queue=notifications",
      "train-ticket.payment-url=http://payment.invalid"
    })
class LookUpTest {
  @Autowired private RestClient.Builder clients;
  @LocalServerPort private int port;

  @Test
  void aUserWhoCancelledLooksForTheRefund() {
    try (ScopeBlock user = Antipode.scope()) {
      Antipode.promise("refunds", Duration.ofMinutes(10)); // What the cancellation does.
      String money =
          clients
              .baseUrl("http://127.0.0.1:" + port)
              .build()
              .get()
              .uri("/api/v1/inside_pay_service/inside_payment/money/{orderId}", "1")
              .retrieve()
              .body(String.class);
      assertThat(money).isEqualTo("[]");
    }
  }
}
// --8<-- [end:test]
