package io.antipode.programs;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import javax.sql.DataSource;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Options;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.Select;
import org.apache.ibatis.annotations.Update;
import org.apache.ibatis.cursor.Cursor;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.ExecutorType;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;

/** MyBatis over a pool: a session is a connection, with autocommit or without. */
final class MyBatisClient implements Client {
  private final SqlSessionFactory sessions;
  private final Random random;
  private final String value;

  MyBatisClient(DataSource pool, Random random, String value) {
    Environment environment = new Environment("programs", new JdbcTransactionFactory(), pool);
    Configuration configuration = new Configuration(environment);
    configuration.addMapper(Mapper.class);
    this.sessions = new SqlSessionFactoryBuilder().build(configuration);
    this.random = random;
    this.value = value;
  }

  /** A row that is inserted, whose id the server gives. */
  static final class Note {
    long id;
    String body = "m";
  }

  /** What the application maps. */
  interface Mapper {
    // Without the cache of the session, which answers without the server.
    @Options(flushCache = Options.FlushCachePolicy.TRUE, useCache = false)
    @Select("${question}")
    long value(@Param("question") String question);

    @Select("SELECT body FROM noted")
    Cursor<String> bodies();

    @Select("SELECT v FROM counted WHERE id = #{id} FOR UPDATE")
    long locked(@Param("id") int id);

    @Select("SELECT * FROM no_such")
    List<String> missing();

    @Update("UPDATE counted SET v = v + 1 WHERE id = #{id}")
    int count(@Param("id") int id);

    @Options(useGeneratedKeys = true, keyProperty = "id", keyColumn = "id")
    @Insert("INSERT INTO noted (body) VALUES (#{body})")
    int note(Note note);

    @Insert("INSERT INTO counted VALUES (1, 1)")
    int twice();
  }

  @Override
  public Use use() {
    ExecutorType[] all = ExecutorType.values();
    ExecutorType type = all[random.nextInt(all.length)];
    return new Opened(sessions.openSession(type, random.nextBoolean()));
  }

  @Override
  public void close() {
    // It has nothing but its pool.
  }

  private final class Opened implements Use {
    private final SqlSession session;
    private final Mapper mapper;

    Opened(SqlSession session) {
      this.session = session;
      this.mapper = session.getMapper(Mapper.class);
    }

    @Override
    public List<Action> actions(boolean isWriting) {
      List<Action> all = new ArrayList<>();
      add(all, "value", () -> mapper.value(value));
      add(all, "bodies", this::bodies);
      add(all, "locked", () -> mapper.locked(1));
      add(all, "no such", mapper::missing);
      add(all, "flush", session::flushStatements);
      add(all, "commit", () -> ended(true));
      add(all, "rollback", () -> ended(false));
      add(all, "clear", this::clear);
      if (isWriting) {
        add(all, "count", () -> mapper.count(1));
        add(all, "count again", () -> mapper.count(1));
        add(all, "note", () -> mapper.note(new Note()));
        add(all, "twice the key", mapper::twice);
        add(all, "of the connection", this::connection);
      }
      return all;
    }

    private void add(List<Action> all, String name, Mapped.Call<?> call) {
      all.add(new Action(name, () -> Mapped.call(call)));
    }

    private boolean clear() {
      session.clearCache();
      return true;
    }

    private boolean ended(boolean commits) {
      boolean isForced = random.nextBoolean();
      if (commits) {
        session.commit(isForced);
      } else {
        session.rollback(isForced);
      }
      return isForced;
    }

    private int bodies() throws Exception {
      int found = 0;
      try (Cursor<String> rows = mapper.bodies()) {
        Iterator<String> each = rows.iterator();
        while (random.nextInt(4) > 0 && each.hasNext()) {
          String unused = each.next();
          found++;
        }
      }
      return found;
    }

    private boolean connection() throws Exception {
      Steps.execute(session.getConnection(), "UPDATE counted SET v = v + 1 WHERE id = 1");
      return true;
    }

    @Override
    public void end(boolean commits) throws Exception {
      boolean unused = Mapped.call(() -> ended(commits));
    }

    @Override
    public long value() throws Exception {
      return Mapped.call(() -> mapper.value(value));
    }

    @Override
    public void giveUp() {
      session.close();
    }

    @Override
    public void close() {
      session.close();
    }
  }
}
