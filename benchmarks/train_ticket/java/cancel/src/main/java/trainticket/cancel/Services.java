package trainticket.cancel;

import java.util.List;
import java.util.Optional;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.RestClient;

/** The services that a cancellation calls. */
@Component
class Services {
  private final RestClient auth;
  private final RestClient user;
  private final List<RestClient> orders;

  Services(
      RestClient.Builder clients,
      @Value("${train-ticket.auth-url}") String auth,
      @Value("${train-ticket.user-url}") String user,
      @Value("${train-ticket.order-urls}") List<String> orders) {
    this.auth = clients.clone().baseUrl(auth).build();
    this.user = clients.clone().baseUrl(user).build();
    this.orders = orders.stream().map(url -> clients.clone().baseUrl(url).build()).toList();
  }

  record Session(String userId) {}

  record User(String id, String email) {}

  record Order(String id, String userId, int status, long cents) {
    private static final int PAID = 1;
    private static final int CANCELLED = 4;

    boolean isCancelled() {
      return status == CANCELLED;
    }

    /** Returns what comes back: four fifths of the price, where it was paid. */
    long refund() {
      return status < PAID ? 0 : cents * 4 / 5;
    }
  }

  /** An order, and the service that has it. */
  record Found(RestClient service, Order order) {}

  Optional<Session> session(String token) {
    try {
      return Optional.ofNullable(
          auth.get().uri("/api/v1/auth/sessions/{token}", token).retrieve().body(Session.class));
    } catch (HttpClientErrorException.Unauthorized expired) {
      return Optional.empty();
    }
  }

  User user(String id) {
    return user.get().uri("/api/v1/userservice/users/{id}", id).retrieve().body(User.class);
  }

  Optional<Found> order(String id) {
    for (RestClient service : orders) {
      try {
        return Optional.of(
            new Found(
                service,
                service
                    .get()
                    .uri("/api/v1/orderservice/order/{id}", id)
                    .retrieve()
                    .body(Order.class)));
      } catch (HttpClientErrorException.NotFound elsewhere) {
        continue;
      }
    }
    return Optional.empty();
  }

  /** Cancels an order, and returns whether it could be. */
  boolean cancel(Found found) {
    try {
      found
          .service()
          .put()
          .uri("/api/v1/orderservice/order/{id}/status/4", found.order().id())
          .retrieve()
          .toBodilessEntity();
      return true;
    } catch (HttpClientErrorException.Conflict cancelled) {
      return false;
    }
  }
}
