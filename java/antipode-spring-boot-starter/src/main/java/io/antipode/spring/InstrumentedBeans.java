package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import io.antipode.runtime.Counts;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationContextAware;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Says which pools, factories and clients of an application are instrumented as which datastore, in
 * one line once it has started, and which are not, in another one. What is made later is said then.
 */
final class InstrumentedBeans
    implements ApplicationContextAware, ApplicationListener<ContextRefreshedEvent> {
  private final List<String> instrumented = new ArrayList<>();
  private final List<String> others = new ArrayList<>();
  private @Nullable ApplicationContext context;
  private boolean hasStarted;

  @Override
  public void setApplicationContext(ApplicationContext given) {
    context = given;
  }

  /**
   * Notes a bean that is instrumented.
   *
   * @param detail how, or null for nothing to say
   */
  synchronized void instrumented(
      String bean, String datastore, @Nullable ReadsFrom readsFrom, @Nullable String detail) {
    String role = readsFrom == ReadsFrom.REPLICA ? " (replica)" : "";
    instrumented.add(bean + " -> " + datastore + role + (detail == null ? "" : ", " + detail));
    if (hasStarted) {
      say();
    }
  }

  /**
   * Notes a bean that nothing instruments.
   *
   * @param why what it is, and what to do where that is not to name its address
   */
  synchronized void notInstrumented(String bean, String why) {
    others.add(bean + " (" + why + ")");
    if (hasStarted) {
      say();
    }
  }

  @Override
  public synchronized void onApplicationEvent(ContextRefreshedEvent event) {
    if (event.getApplicationContext() == context) {
      hasStarted = true;
      say();
    }
  }

  private void say() {
    if (!instrumented.isEmpty()) {
      Counts.LOG.info("instrumented: " + String.join("; ", instrumented));
      instrumented.clear();
    }
    if (!others.isEmpty()) {
      Counts.LOG.warning(
          "not instrumented: "
              + String.join("; ", others)
              + ". Their writes are in no lineage, and their reads wait for nothing: name their"
              + " addresses in antipode.datastores (ANTIPODE_DATASTORES)");
      others.clear();
    }
  }
}
