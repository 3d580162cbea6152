package trainticket.cancel;

import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** Cancels orders. */
@RestController
class CancelController {
  private final Services services;
  private final RefundRequests refunds;

  CancelController(Services services, RefundRequests refunds) {
    this.services = services;
    this.refunds = refunds;
  }

  /**
   * What the user is told.
   *
   * @param status 1 for cancelled, 0 for not
   * @param data how many cents come back
   */
  record Answer(int status, String msg, long data) {}

  @GetMapping("/api/v1/cancelservice/cancel/{orderId}/{loginId}")
  Answer cancel(
      @PathVariable String orderId,
      @PathVariable String loginId,
      @RequestHeader("Authorization") String token) {
    if (services.session(token).filter(it -> it.userId().equals(loginId)).isEmpty()) {
      throw new ResponseStatusException(HttpStatus.UNAUTHORIZED, "not logged in");
    }
    Services.Found found =
        services
            .order(orderId)
            .filter(it -> it.order().userId().equals(loginId))
            .orElseThrow(() -> new ResponseStatusException(HttpStatus.NOT_FOUND, "no such order"));
    Services.User user = services.user(loginId);
    // A user whose first call ended with an error calls again: the order may be cancelled by then,
    // and its refund not be asked for. To ask twice makes one refund.
    if (!services.cancel(found) && !found.order().isCancelled()) {
      return new Answer(0, "Order Status Cancel Not Permitted", 0);
    }
    long cents = found.order().refund();
    if (cents > 0) {
      refunds.request(new RefundRequest(orderId, loginId, cents, user.email()));
    }
    return new Answer(1, "Success", cents);
  }
}
