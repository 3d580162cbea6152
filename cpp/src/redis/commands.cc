#include "redis/commands.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

namespace antipode::redis {
namespace {

using Names = std::set<std::string, std::less<>>;

/// The names of a list, and those of two words.
Names NamesIn(const char* list, std::initializer_list<const char*> more = {}) {
  Names names(more.begin(), more.end());
  std::istringstream words(list);
  for (std::string word; words >> word;) names.insert(word);
  return names;
}

const Names& Writes() {
  static const Names& names = *new Names(NamesIn(
      "APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL "
      "DELEX EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GEORADIUS GEORADIUSBYMEMBER GEOSEARCHSTORE GETDEL GETEX "
      "GETSET HDEL HEXPIRE HEXPIREAT HGETDEL HGETEX HINCRBY HINCRBYFLOAT HMSET HPERSIST HPEXPIRE HPEXPIREAT "
      "HSET HSETEX HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM MOVE "
      "MSET MSETEX MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE RPOP RPOPLPUSH "
      "RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE SORT SPOP SREM "
      "SUNIONSTORE SWAPDB UNLINK VADD VREM VSETATTR XACK XACKDEL XADD XAUTOCLAIM XCLAIM XDEL XDELEX XREADGROUP "
      "XSETID XTRIM ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX "
      "ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE",
      {"XGROUP CREATE", "XGROUP CREATECONSUMER", "XGROUP DELCONSUMER", "XGROUP DESTROY", "XGROUP SETID"}));
  return names;
}

const Names& ReadNames() {
  static const Names& names = *new Names(
      NamesIn("BITCOUNT BITFIELD_RO BITPOS DBSIZE DIGEST DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST "
              "GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HEXPIRETIME HGET "
              "HGETALL HKEYS HLEN HMGET HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS KEYS LCS LINDEX LLEN "
              "LPOS LRANGE MGET PEXPIRETIME PFCOUNT PTTL RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER "
              "SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TOUCH TTL TYPE VCARD VDIM VEMB "
              "VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VSIM XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD "
              "ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK "
              "ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION",
              {"MEMORY USAGE", "OBJECT ENCODING", "OBJECT FREQ", "OBJECT IDLETIME", "OBJECT REFCOUNT",
               "XINFO CONSUMERS", "XINFO GROUPS", "XINFO STREAM"}));
  return names;
}

const Names& Others() {
  static const Names& names = *new Names(
      NamesIn("ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DEBUG ECHO FAILOVER HELLO INFO "
              "LASTSAVE LATENCY LOLWUT MEMORY MODULE MONITOR OBJECT PING PSUBSCRIBE PUBLISH PUBSUB PUNSUBSCRIBE QUIT "
              "READONLY READWRITE REPLICAOF RESET ROLE SAVE SCRIPT SELECT SENTINEL SHUTDOWN SLAVEOF SLOWLOG SPUBLISH "
              "SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE TIME UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH"));
  return names;
}

/// The word after these decides.
bool IsContainer(const std::string& name) {
  return name == "MEMORY" || name == "OBJECT" || name == "XGROUP" || name == "XINFO";
}

/// Whether XREAD waits, by the places where its options stand.
bool Awaits(const std::vector<std::string>& words) {
  const auto is_block = [&](std::size_t at) { return at < words.size() && Capitals(words[at]) == "BLOCK"; };
  return is_block(1) || is_block(3);
}

}  // namespace

std::string_view NameOf(Does does) {
  static constexpr std::array<std::string_view, 6> kNames{"read",    "awaiting_read", "write",
                                                          "unknown", "neither",       "queues"};
  return kNames[static_cast<std::size_t>(does)];
}

std::string Capitals(std::string_view word) {
  std::string capitals(word);
  for (char& each : capitals) {
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
  }
  return capitals;
}

Does DoesOf(const std::vector<std::string>& words) {
  if (words.empty()) return Does::kUnknown;
  const std::string first = Capitals(words[0]);
  const bool container = IsContainer(first);
  const std::string name = container && words.size() > 1 ? first + " " + Capitals(words[1]) : first;
  if (Writes().count(name) != 0) return Does::kWrite;
  if (ReadNames().count(name) != 0) return first == "XREAD" && Awaits(words) ? Does::kAwaitingRead : Does::kRead;
  if (name == "MULTI" || name == "EXEC" || name == "DISCARD") return Does::kQueues;
  return container || Others().count(name) != 0 ? Does::kNeither : Does::kUnknown;
}

}  // namespace antipode::redis
