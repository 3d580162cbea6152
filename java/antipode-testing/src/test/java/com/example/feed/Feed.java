package com.example.feed;

import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import java.time.Duration;

/** An application: its posts are in a store in memory, of which it reads a replica. */
public final class Feed extends Shim {
  private long posts;

  /** Makes one that is not registered. */
  public Feed() {
    super("posts", ReadsFrom.REPLICA);
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) {
    throw new UnreachableException("a dry run does not look");
  }

  /** Writes a post. */
  public void publish() {
    posts++;
    Recording.recordWrite(WriteId.of(datastore(), "log", posts));
  }

  /** Reads what a follower sees. */
  public void show() {
    Object unused = Floor.current(this);
  }

  /** Waits for it first. */
  public void showGuarded() {
    Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(1)).withOnly(datastore()));
    show();
  }
}
