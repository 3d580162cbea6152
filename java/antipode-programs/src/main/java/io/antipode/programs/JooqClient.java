package io.antipode.programs;

import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.table;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import javax.sql.DataSource;
import org.jooq.Cursor;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.impl.DSL;

/** jOOQ over a pool: each call takes a connection of its own, but in a transaction. */
final class JooqClient implements Client {
  private static final Table<Record> COUNTED = table(name("counted"));
  private static final Table<Record> NOTED = table(name("noted"));
  private static final Field<Integer> ID = field(name("id"), Integer.class);
  private static final Field<Long> NOTE_ID = field(name("id"), Long.class);
  private static final Field<Long> V = field(name("v"), Long.class);
  private static final Field<String> BODY = field(name("body"), String.class);

  private final DSLContext dsl;
  private final Random random;
  private final String value;

  JooqClient(DataSource pool, String store, Random random, String value) {
    SQLDialect dialect =
        switch (store) {
          case "postgresql" -> SQLDialect.POSTGRES;
          case "mariadb" -> SQLDialect.MARIADB;
          default -> SQLDialect.MYSQL;
        };
    this.dsl = DSL.using(pool, dialect);
    this.random = random;
    this.value = value;
  }

  @Override
  public Use use() {
    return new Context();
  }

  @Override
  public void close() {
    // It has nothing but its pool.
  }

  private final class Context implements Use {
    @Override
    public List<Action> actions(boolean isWriting) {
      List<Action> all = new ArrayList<>();
      add(all, "value", () -> number(dsl));
      add(all, "rows", () -> dsl.selectFrom(NOTED).limit(3).fetch());
      add(all, "lazily", this::lazily);
      add(all, "no such", () -> dsl.fetch("SELECT * FROM no_such"));
      add(all, "read in a transaction", () -> dsl.transactionResult(c -> number(c.dsl())));
      if (isWriting) {
        add(all, "update", () -> count(dsl));
        add(all, "insert", () -> note(dsl));
        add(all, "returning", () -> noted(dsl));
        add(all, "batch", () -> batch(dsl));
        add(
            all,
            "query",
            () -> dsl.query("UPDATE counted SET v = v + 1 WHERE id = {0}", 1).execute());
        add(all, "transaction", () -> dsl.transactionResult(c -> several(c.dsl())));
        add(all, "nested", () -> dsl.transactionResult(c -> nested(c.dsl())));
        add(all, "twice the key", () -> dsl.insertInto(COUNTED, ID, V).values(1, 1L).execute());
      }
      return all;
    }

    private void add(List<Action> all, String name, Mapped.Call<?> call) {
      all.add(new Action(name, () -> Mapped.call(call)));
    }

    private long number(DSLContext context) {
      Record row = context.fetchOne(value);
      return row == null ? -1 : row.get(0, long.class);
    }

    private boolean lazily() {
      try (Cursor<Record> rows = dsl.selectFrom(NOTED).fetchSize(2).fetchLazy()) {
        while (random.nextInt(4) > 0 && rows.hasNext()) {
          Record unused = rows.fetchNext();
        }
        return rows.hasNext();
      }
    }

    private int count(DSLContext context) {
      return context.update(COUNTED).set(V, V.plus(1)).where(ID.eq(1)).execute();
    }

    private int note(DSLContext context) {
      return context.insertInto(NOTED, BODY).values("j").execute();
    }

    private Object noted(DSLContext context) {
      return context.insertInto(NOTED, BODY).values("r").returningResult(NOTE_ID).fetch();
    }

    private int[] batch(DSLContext context) {
      return context
          .batch(
              context.insertInto(NOTED, BODY).values("b"),
              context.update(COUNTED).set(V, V.plus(1)).where(ID.eq(1)))
          .execute();
    }

    /** Some of all; its transaction may be given up. */
    private boolean several(DSLContext context) {
      for (int left = 1 + random.nextInt(3); left > 0; left--) {
        Object unused =
            switch (random.nextInt(5)) {
              case 0 -> number(context);
              case 1 -> note(context);
              case 2 -> noted(context);
              case 3 -> batch(context);
              default -> count(context);
            };
      }
      return goesOn();
    }

    private boolean nested(DSLContext context) {
      count(context);
      try {
        boolean unused = context.transactionResult(c -> several(c.dsl()));
      } catch (IllegalStateException givenUp) {
        // What is around it goes on.
      }
      return goesOn();
    }

    private boolean goesOn() {
      if (random.nextInt(4) == 0) {
        throw new IllegalStateException("given up");
      }
      return true;
    }

    @Override
    public void end(boolean commits) {
      // Nothing is left open.
    }

    @Override
    public long value() throws Exception {
      return Mapped.call(() -> number(dsl));
    }

    @Override
    public void giveUp() {
      // Its connections are the pool's.
    }

    @Override
    public void close() {
      // It keeps no connection.
    }
  }
}
