package io.antipode.messages;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.barrier.Wake;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * Judges by what was seen: a poll costs no round trip, and what is seen wakes. It is not pinned: a
 * publication that this process received is visible though those before it may not be.
 */
public final class ReceiptsEndpoint implements Endpoint {
  private final Ledger ledger;
  private final @Nullable Tap tap;
  private long changes = -1;

  /** Judges by a ledger, which a tap fills; without one consumers do. */
  public ReceiptsEndpoint(Ledger ledger, @Nullable Tap tap) {
    this.ledger = ledger;
    this.tap = tap;
  }

  @Override
  public Observation observe(Collection<WriteId> writes, Duration timeout) {
    changes = ledger.changes();
    Observation.Builder seen = Observation.of(server());
    for (WriteId write : writes) {
      Ledger.Said said = explained(ledger.judge(write));
      seen.write(write, said.status(), said.cause());
    }
    return seen.build();
  }

  @Override
  public Observation promised(Collection<Promise> promises, Duration timeout) {
    changes = ledger.changes();
    Observation.Builder seen = Observation.of(server());
    for (Promise promise : promises) {
      seen.promise(promise, explained(ledger.judge(promise)).status());
    }
    return seen.build();
  }

  /** What was said, with the reasons that this endpoint knows: deaf, or listening elsewhere. */
  private Ledger.Said explained(Ledger.Said said) {
    if (said.status() == Status.VISIBLE) {
      return said;
    }
    if (tap != null && !tap.deaf().isEmpty()) {
      return new Ledger.Said(Status.UNREACHABLE, tap.deaf());
    }
    return said.status() == Status.NOT_YET ? new Ledger.Said(said.status(), unseen()) : said;
  }

  private String unseen() {
    return tap == null ? "no consumer of this process has received it" : tap.unseen();
  }

  private String server() {
    return tap == null ? "consumers" : tap.queue();
  }

  @Override
  public void pause(Duration timeout, Wake wake) throws InterruptedException {
    ledger.subscribe(wake);
    try {
      if (ledger.changes() == changes) {
        boolean ignored = wake.await(timeout);
      }
    } finally {
      ledger.unsubscribe(wake);
    }
  }

  /** Releases nothing: the tap is the shim's. */
  @Override
  public void close() {}
}
