package io.antipode.redis;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** What commands do, by their names and words: no question to the server decides it. */
final class Commands {
  /** What a command means for a lineage. */
  enum Kind {
    READ,
    /** A read that waits for what comes: made twice, it would miss what came the first time. */
    AWAITING_READ,
    WRITE,
    /** It may write and read what it likes: a script, a module's command. */
    UNKNOWN,
    NEITHER,
    /** It begins or ends what is queued on the server. */
    QUEUES;

    /** Returns whether it reads for certain. */
    boolean reads() {
      return this == READ || this == AWAITING_READ;
    }

    boolean mayWrite() {
      return this == WRITE || this == UNKNOWN;
    }

    /** Returns whether a floor may hold it back. */
    boolean mayRead() {
      return reads() || this == UNKNOWN;
    }

    /** Returns whether it can be sent again without a second effect. */
    boolean isRepeatable() {
      return this == READ || this == NEITHER;
    }
  }

  private static final Set<String> WRITES =
      names(
          """
          APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN
          COPY DECR DECRBY DEL DELEX EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GEORADIUS
          GEORADIUSBYMEMBER GEOSEARCHSTORE GETDEL GETEX GETSET HDEL HEXPIRE HEXPIREAT HGETDEL
          HGETEX HINCRBY HINCRBYFLOAT HMSET HPERSIST HPEXPIRE HPEXPIREAT HSET HSETEX HSETNX INCR
          INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM MOVE MSET
          MSETEX MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE
          RPOP RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE
          SINTERSTORE SMOVE SORT SPOP SREM SUNIONSTORE SWAPDB UNLINK VADD VREM VSETATTR XACK
          XACKDEL XADD XAUTOCLAIM XCLAIM XDEL XDELEX XREADGROUP XSETID XTRIM ZADD ZDIFFSTORE
          ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX
          ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
          """,
          "XGROUP CREATE",
          "XGROUP CREATECONSUMER",
          "XGROUP DELCONSUMER",
          "XGROUP DESTROY",
          "XGROUP SETID");

  private static final Set<String> READS =
      names(
          """
          BITCOUNT BITFIELD_RO BITPOS DBSIZE DIGEST DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME
          FCALL_RO GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT
          GETRANGE HEXISTS HEXPIRETIME HGET HGETALL HKEYS HLEN HMGET HPEXPIRETIME HPTTL
          HRANDFIELD HSCAN HSTRLEN HTTL HVALS KEYS LCS LINDEX LLEN LPOS LRANGE MGET PEXPIRETIME
          PFCOUNT PTTL RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS
          SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TOUCH TTL TYPE VCARD VDIM
          VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VSIM XLEN XPENDING XRANGE
          XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER
          ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE
          ZREVRANK ZSCAN ZSCORE ZUNION
          """,
          "MEMORY USAGE",
          "OBJECT ENCODING",
          "OBJECT FREQ",
          "OBJECT IDLETIME",
          "OBJECT REFCOUNT",
          "XINFO CONSUMERS",
          "XINFO GROUPS",
          "XINFO STREAM");

  private static final Set<String> NEITHER =
      names(
          """
          ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DEBUG ECHO FAILOVER
          HELLO INFO LASTSAVE LATENCY LOLWUT MEMORY MODULE MONITOR OBJECT PING PSUBSCRIBE
          PUBLISH PUBSUB PUNSUBSCRIBE QUIT READONLY READWRITE REPLICAOF RESET ROLE SAVE SCRIPT
          SELECT SENTINEL SHUTDOWN SLAVEOF SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE
          TIME UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH
          """);

  private static final Set<String> QUEUING = Set.of("DISCARD", "EXEC", "MULTI");

  /** What changes the connection itself, for whatever is sent on it afterwards. */
  private static final Set<String> OF_THE_CONNECTION =
      names(
          """
          ASKING AUTH CLIENT DISCARD EXEC HELLO MONITOR MULTI PSUBSCRIBE PUNSUBSCRIBE QUIT
          READONLY READWRITE RESET SELECT SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE UNWATCH
          WATCH
          """);

  /** What runs a script, which cannot change the connection of its caller. */
  private static final Set<String> SCRIPTS = Set.of("EVAL", "EVALSHA", "FCALL");

  /** The word after these decides. */
  private static final Set<String> CONTAINERS = Set.of("MEMORY", "OBJECT", "XGROUP", "XINFO");

  /** Where options of {@code XREAD} may stand. */
  private static final int[] OPTIONS = {1, 3};

  private Commands() {}

  private static Set<String> names(String words, String... more) {
    List<String> names = new ArrayList<>(List.of(words.strip().split("\\s+", -1)));
    names.addAll(List.of(more));
    return Set.copyOf(names);
  }

  /** Returns whether the words of a command after its name have to be known. */
  static boolean isDecidedByWords(String name) {
    String first = name.toUpperCase(Locale.ROOT);
    return CONTAINERS.contains(first) || first.equals("XREAD");
  }

  /** Returns what a command does, by its words; of most the first is enough. */
  static Kind kind(List<String> words) {
    String first = words.get(0).toUpperCase(Locale.ROOT);
    String name =
        CONTAINERS.contains(first) && words.size() > 1
            ? first + " " + words.get(1).toUpperCase(Locale.ROOT)
            : first;
    if (WRITES.contains(name)) {
      return Kind.WRITE;
    }
    if (READS.contains(name)) {
      return first.equals("XREAD") && awaits(words) ? Kind.AWAITING_READ : Kind.READ;
    }
    if (QUEUING.contains(name)) {
      return Kind.QUEUES;
    }
    return NEITHER.contains(name) || CONTAINERS.contains(first) ? Kind.NEITHER : Kind.UNKNOWN;
  }

  /**
   * Returns whether a command may change the connection itself: its database, its user, whether it
   * is in a transaction. One that is in no table may.
   */
  static boolean mayChangeConnection(String name, Kind kind) {
    String first = name.toUpperCase(Locale.ROOT);
    return OF_THE_CONNECTION.contains(first) || (kind == Kind.UNKNOWN && !SCRIPTS.contains(first));
  }

  private static boolean awaits(List<String> words) {
    for (int at : OPTIONS) {
      if (at < words.size() && words.get(at).equalsIgnoreCase("BLOCK")) {
        return true;
      }
    }
    return false;
  }

  /** Returns whether anything of what is sent at once may write. */
  static boolean mayWrite(Collection<Kind> kinds) {
    return kinds.stream().anyMatch(Kind::mayWrite);
  }
}
