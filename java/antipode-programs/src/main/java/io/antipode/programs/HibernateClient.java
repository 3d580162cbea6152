package io.antipode.programs;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.hibernate.LockMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.Transaction;
import org.hibernate.cfg.Configuration;

/** Hibernate over a pool: a session, whose transactions take a connection each. */
final class HibernateClient implements Client {
  private final SessionFactory sessions;
  private final Random random;
  private final String value;

  HibernateClient(DataSource pool, Random random, String value) {
    Configuration configuration =
        new Configuration().addAnnotatedClass(Counted.class).addAnnotatedClass(Noted.class);
    configuration.getProperties().put("hibernate.connection.datasource", pool);
    this.sessions = configuration.buildSessionFactory();
    this.random = random;
    this.value = value;
  }

  /** A number, which each change raises. */
  @Entity
  @Table(name = "counted")
  static class Counted {
    @Id int id;
    @Version long v;
  }

  /** A row whose id the server gives. */
  @Entity
  @Table(name = "noted")
  static class Noted {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    long id;

    String body = "h";
  }

  @Override
  public Use use() {
    return new Opened(sessions.openSession());
  }

  @Override
  public void close() {
    sessions.close();
  }

  private final class Opened implements Use {
    private final Session session;

    Opened(Session session) {
      this.session = session;
    }

    @Override
    public List<Action> actions(boolean isWriting) {
      List<Action> all = new ArrayList<>();
      add(all, "begin", this::begin);
      add(all, "begin again", this::begin);
      add(all, "commit", () -> ended(true));
      add(all, "rollback", () -> ended(false));
      add(all, "value", this::number);
      add(all, "find", () -> session.find(Counted.class, 1));
      add(all, "locked", () -> session.find(Counted.class, 1, LockModeType.PESSIMISTIC_WRITE));
      add(
          all,
          "query",
          () -> session.createSelectionQuery("from Noted", Noted.class).setMaxResults(2).list());
      add(all, "stream", this::stream);
      add(
          all,
          "no such",
          () -> session.createNativeQuery("SELECT * FROM no_such", Long.class).list());
      add(all, "flush", () -> run(session::flush));
      add(all, "clear", () -> run(session::clear));
      if (isWriting) {
        add(all, "persist", () -> run(() -> session.persist(new Noted())));
        add(all, "raise at once", () -> locked(LockMode.PESSIMISTIC_FORCE_INCREMENT));
        add(all, "raise at commit", () -> locked(LockMode.OPTIMISTIC_FORCE_INCREMENT));
        add(all, "update", this::update);
        add(all, "native", this::natively);
        add(all, "in one", this::inOne);
        add(all, "by the connection", this::connection);
        add(all, "remove none", this::remove);
      }
      return all;
    }

    private void add(List<Action> all, String name, Mapped.Call<?> call) {
      all.add(new Action(name, () -> Mapped.call(call)));
    }

    private boolean run(Runnable call) {
      call.run();
      return true;
    }

    private boolean begin() {
      Transaction transaction = session.getTransaction();
      if (!transaction.isActive()) {
        transaction.begin();
      }
      return true;
    }

    private boolean ended(boolean commits) {
      Transaction transaction = session.getTransaction();
      if (transaction.isActive()) {
        if (commits) {
          transaction.commit();
        } else {
          transaction.rollback();
        }
        session.clear(); // What it holds may be of what is undone.
      }
      return commits;
    }

    private long number() {
      return session.createNativeQuery(value, Long.class).getSingleResult();
    }

    private int stream() {
      int found = 0;
      try (Stream<Noted> rows =
          session.createSelectionQuery("from Noted", Noted.class).setFetchSize(2).stream()) {
        Iterator<Noted> each = rows.iterator();
        while (random.nextInt(4) > 0 && each.hasNext()) {
          Noted unused = each.next();
          found++;
        }
      }
      return found;
    }

    private boolean locked(LockMode mode) {
      Counted counted = session.find(Counted.class, 1);
      session.lock(counted, mode);
      return true;
    }

    private int update() {
      return session
          .createMutationQuery("update Counted c set c.v = c.v + 1 where c.id = 1")
          .executeUpdate();
    }

    private int natively() {
      return session
          .createNativeMutationQuery("UPDATE counted SET v = v + 1 WHERE id = 1")
          .executeUpdate();
    }

    private int remove() {
      return session.createMutationQuery("delete from Noted n where n.id < 0").executeUpdate();
    }

    private boolean inOne() {
      sessions.inTransaction(
          other -> {
            other.persist(new Noted());
            if (random.nextInt(4) == 0) {
              throw new IllegalStateException("given up");
            }
          });
      return true;
    }

    private boolean connection() {
      session.doWork(
          connection -> Steps.execute(connection, "UPDATE counted SET v = v + 1 WHERE id = 1"));
      return true;
    }

    @Override
    public void end(boolean commits) throws Exception {
      boolean unused = Mapped.call(() -> ended(commits));
    }

    @Override
    public long value() throws Exception {
      return Mapped.call(this::number);
    }

    @Override
    public void giveUp() {
      session.close();
    }

    @Override
    public void close() throws Exception {
      if (session.isOpen()) {
        boolean unused = Mapped.call(() -> ended(false));
        session.close();
      }
    }
  }
}
