package io.antipode.testing;

import io.antipode.dryrun.FindingId;
import java.util.List;
import java.util.SortedSet;

/**
 * Reads at one place that do not wait for what was written at another.
 *
 * @param datastore what is read
 * @param read where it is read
 * @param write where it was written; unknown where another process wrote it
 * @param reads how many reads
 * @param tests the tests that show it
 */
record Finding(String datastore, Site read, Site write, int reads, SortedSet<String> tests) {
  /** A place, as records have it. */
  record Site(String file, int line, String function) {
    static final Site UNKNOWN = new Site("", 0, "");

    @Override
    public String toString() {
      return this.equals(UNKNOWN) ? "in another process" : file + ":" + line + " in " + function;
    }
  }

  String id() {
    return FindingId.of(
        List.of("unguarded", datastore, read.file, read.function, write.file, write.function));
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(id());
    text.append(' ').append(datastore);
    text.append(": read from a replica without waiting for the write (").append(reads);
    text.append(reads == 1 ? " read)" : " reads)");
    text.append("\n  write ").append(write);
    text.append("\n  read  ").append(read);
    text.append("\n  fix   Barriers.barrier(BarrierOptions.timeout(...).withOnly(\"");
    text.append(datastore).append("\")) before ").append(read);
    tests.forEach(test -> text.append("\n  test  ").append(test));
    return text.toString();
  }
}
