package io.antipode.programs;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** What a program found, and what its request has done so far. Thread-safe. */
final class Tally {
  /** Of the faults so many are described. */
  private static final int MOST_NOTES = 5;

  private final List<String> done = new ArrayList<>();

  /** What the request before did: its connection may have gone on with something of it. */
  private List<String> before = List.of();

  private final List<String> notes = new ArrayList<>();
  private int steps;
  private int judged;
  private int lost;
  private int early;
  private int alarms;

  /** A request begins. */
  synchronized void begins() {
    before = List.copyOf(done);
    done.clear();
  }

  /** Notes what happens, for whoever reads what went wrong. */
  synchronized void does(String what) {
    done.add(what);
  }

  /** Notes a step, which counts. */
  synchronized void steps(String name) {
    steps++;
    done.add(name);
  }

  synchronized int steps() {
    return steps;
  }

  /** Something was compared with what is there. */
  synchronized void judges() {
    judged++;
  }

  synchronized void lost(String what) {
    lost++;
    note("lost " + what);
  }

  synchronized void early(String what) {
    early++;
    note("early: " + what);
  }

  /** A mark, a wait or a refusal that was not needed. */
  synchronized void alarm() {
    alarms++;
  }

  /** The same, described. */
  synchronized void alarm(String what) {
    alarms++;
    note(what);
  }

  private void note(String what) {
    if (notes.size() < MOST_NOTES) {
      notes.add(what + " after " + done + ", after a request of " + before);
    }
  }

  /** Returns all of it as a line of JSON. */
  synchronized ObjectNode line(String client) {
    ObjectNode line = JsonNodeFactory.instance.objectNode();
    line.put("client", client);
    line.put("steps", steps).put("lost", lost).put("early", early).put("alarms", alarms);
    line.put("judged", judged);
    notes.forEach(line.putArray("notes")::add);
    return line;
  }
}
