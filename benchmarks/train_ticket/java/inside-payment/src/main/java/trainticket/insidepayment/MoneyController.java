package trainticket.insidepayment;

import java.util.List;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** Shows users what came back. */
@RestController
class MoneyController {
  private final MoneyReader money;

  MoneyController(MoneyReader money) {
    this.money = money;
  }

  @GetMapping("/api/v1/inside_pay_service/inside_payment/money/{orderId}")
  List<Money> money(@PathVariable String orderId) {
    return money.of(orderId);
  }
}
