package trainticket.order;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Shows and changes orders. */
@RestController
@RequestMapping("/api/v1/orderservice/order/{id}")
class OrderController {
  private final Orders orders;

  OrderController(Orders orders) {
    this.orders = orders;
  }

  @GetMapping
  ResponseEntity<Order> order(@PathVariable String id) {
    return ResponseEntity.of(orders.find(id));
  }

  @PutMapping("/status/4")
  ResponseEntity<Void> cancel(@PathVariable String id) {
    return ResponseEntity.status(orders.cancel(id) ? HttpStatus.NO_CONTENT : HttpStatus.CONFLICT)
        .build();
  }
}
