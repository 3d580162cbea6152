"""Every Redis command that is covered: what it writes, and by what a reader notices.

A row is "what is there before; the write; the read", commands separated by semicolons. ``$DUMP``
stands for what ``DUMP k`` answers, ``$SHA`` for the digest of the script loaded by ``SCRIPT``.
"""

from __future__ import annotations

STREAM = "XADD s 1-1 f v"
GROUP = f"{STREAM}; XGROUP CREATE s g 0"
TAKEN = f"{GROUP}; XREADGROUP GROUP g c STREAMS s >"
CAPE = "GEOADD g 13 38 a"
FUNCTION = (
    "#!lua name=lib\nredis.register_function{function_name='f', flags={'no-writes'}, "
    "callback=function(keys) return redis.call('GET', keys[1]) end}"
)

STRINGS = """
; APPEND k v; GET k
; BITFIELD k SET u8 0 7; BITFIELD_RO k GET u8 0
SET k a; BITOP NOT d k; GET d
SET k a; COPY k d; GET d
; DECR n; GET n
; DECRBY n 2; GET n
SET k v; DEL k; EXISTS k
SET k v; UNLINK k; TYPE k
SET k v; EXPIRE k 100; EXPIRETIME k
SET k v; EXPIREAT k 9999999999; EXPIRETIME k
SET k v; PEXPIRE k 100000; PEXPIRETIME k
SET k v; PEXPIREAT k 9999999999999; PEXPIRETIME k
SET k v EX 100; PERSIST k; TTL k
SET k v; DEL k; PTTL k
SET k v; FLUSHALL; DBSIZE
SET k v; FLUSHDB; DBSIZE
SET k v; GETDEL k; GET k
SET k v; GETEX k EX 100; EXPIRETIME k
SET k v; GETSET k w; GET k
; INCR n; GET n
; INCRBY n 3; GET n
; INCRBYFLOAT n 1.5; GET n
SET k v; MOVE k 1; EXISTS k
; MSET k 1 d 2; MGET k d
; MSETNX k 1 d 2; MGET k d
; PSETEX k 100000 v; GET k
; SETEX k 100 v; GET k
; SETNX k v; GET k
; SET k v; STRLEN k
; SET k v; SUBSTR k 0 -1
; SET k v; DUMP k
; SET k v; TOUCH k
; SET k v; KEYS k
; SET k v; RANDOMKEY
; SET k v; SCAN 0
; SET k v; MEMORY USAGE k
; SET k v; OBJECT ENCODING k
; SET k v; OBJECT REFCOUNT k
; SET k v; OBJECT IDLETIME k
SET d vw; SET k vw; LCS k d
; SETRANGE k 0 z; GETRANGE k 0 -1
; SETBIT k 1 1; BITCOUNT k
; SETBIT k 1 1; GETBIT k 1
; SETBIT k 1 1; BITPOS k 1
SET k v; RENAME k d; EXISTS k
SET k v; RENAMENX k d; EXISTS d
SET k v; RESTORE d 0 $DUMP; GET d
SET k v; SWAPDB 0 1; GET k
; PFADD p a; PFCOUNT p
PFADD p a; PFMERGE d p; PFCOUNT d
; SET k v; EVAL_RO return{redis.call('GET',KEYS[1])} 1 k
SCRIPT LOAD return{redis.call('GET',KEYS[1])}; SET k v; EVALSHA_RO $SHA 1 k
FUNCTION LOAD $FUNCTION; SET k v; FCALL_RO f 1 k
"""

HASHES = """
HSET h f v; HDEL h f; HGET h f
; HINCRBY h n 1; HGET h n
; HINCRBYFLOAT h n 1.5; HGET h n
; HMSET h f v; HGETALL h
; HSETNX h f v; HMGET h f n
; HSET h f v; HEXISTS h f
; HSET h f v; HKEYS h
; HSET h f v; HLEN h
; HSET h f v; HRANDFIELD h
; HSET h f v; HSCAN h 0
; HSET h f v; HSTRLEN h f
; HSET h f v; HVALS h
"""

LISTS = """
RPUSH l a; LINSERT l BEFORE a b; LRANGE l 0 -1
RPUSH l a b; LMOVE l m LEFT RIGHT; LLEN l
RPUSH l a b; LMPOP 1 l LEFT; LLEN l
RPUSH l a b; LPOP l; LLEN l
; LPUSH l a; LINDEX l 0
LPUSH l a; LPUSHX l b; LINDEX l 0
RPUSH l a b; LREM l 0 a; LPOS l a
RPUSH l a; LSET l 0 z; LINDEX l 0
RPUSH l a; LTRIM l 1 0; EXISTS l
RPUSH l a b; RPOP l; LLEN l
RPUSH l a b; RPOPLPUSH l m; LLEN m
; RPUSH l a; LLEN l
RPUSH l a; RPUSHX l b; LLEN l
RPUSH l a b; BLMOVE l m LEFT RIGHT 1; LLEN m
RPUSH l a b; BLMPOP 1 1 l LEFT; LLEN l
RPUSH l a b; BLPOP l 1; LLEN l
RPUSH l a b; BRPOP l 1; LLEN l
RPUSH l a b; BRPOPLPUSH l m 1; LLEN m
RPUSH l b a; SORT l ALPHA STORE d; LRANGE d 0 -1
; RPUSH l b a; SORT_RO l ALPHA
"""

SETS = """
; SADD s a; SISMEMBER s a
SADD s a; SDIFFSTORE d s t; SCARD d
SADD s a; SINTERSTORE d s s; SMEMBERS d
SADD s a b; SMOVE s d a; SMISMEMBER s a b
SADD s a b; SPOP s; SCARD s
SADD s a; SREM s a; SISMEMBER s a
SADD s a; SUNIONSTORE d s t; SCARD d
; SADD s a; SDIFF s
; SADD s a; SINTER s
; SADD s a; SINTERCARD 1 s
; SADD s a; SRANDMEMBER s
; SADD s a; SSCAN s 0
; SADD s a; SUNION s
"""

SORTED_SETS = """
; ZADD z 1 a; ZSCORE z a
ZADD z 1 a; ZDIFFSTORE d 1 z; ZCARD d
; ZINCRBY z 2 a; ZMSCORE z a
ZADD z 1 a; ZINTERSTORE d 1 z; ZCOUNT d -inf +inf
ZADD z 1 a 2 b; ZMPOP 1 z MIN; ZCARD z
ZADD z 1 a 2 b; ZPOPMAX z; ZCARD z
ZADD z 1 a 2 b; ZPOPMIN z; ZCARD z
ZADD z 1 a 2 b; BZMPOP 1 1 z MIN; ZCARD z
ZADD z 1 a 2 b; BZPOPMAX z 1; ZCARD z
ZADD z 1 a 2 b; BZPOPMIN z 1; ZCARD z
ZADD z 1 a; ZRANGESTORE d z 0 -1; ZRANGE d 0 -1
ZADD z 1 a; ZREM z a; ZRANK z a
ZADD z 1 a; ZREMRANGEBYLEX z - +; ZLEXCOUNT z - +
ZADD z 1 a; ZREMRANGEBYRANK z 0 -1; ZREVRANGE z 0 -1
ZADD z 1 a; ZREMRANGEBYSCORE z -inf +inf; ZRANGEBYSCORE z -inf +inf
ZADD z 1 a; ZUNIONSTORE d 1 z; ZCARD d
; ZADD z 1 a; ZDIFF 1 z
; ZADD z 1 a; ZINTER 1 z
; ZADD z 1 a; ZINTERCARD 1 z
; ZADD z 1 a; ZRANDMEMBER z
; ZADD z 1 a; ZRANGEBYLEX z - +
; ZADD z 1 a; ZREVRANGEBYLEX z + -
; ZADD z 1 a; ZREVRANGEBYSCORE z +inf -inf
; ZADD z 1 a; ZREVRANK z a
; ZADD z 1 a; ZSCAN z 0
; ZADD z 1 a; ZUNION 1 z
"""

PLACES = f"""
; {CAPE}; GEOPOS g a
{CAPE}; GEORADIUS g 13 38 10 km STORE d; ZCARD d
{CAPE}; GEORADIUSBYMEMBER g a 10 km STORE d; ZCARD d
{CAPE}; GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 10 km; ZCARD d
; {CAPE}; GEODIST g a a
; {CAPE}; GEOHASH g a
{CAPE}; GEOADD g 13 38 b; GEORADIUSBYMEMBER_RO g a 10 km
; {CAPE}; GEORADIUS_RO g 13 38 10 km
; {CAPE}; GEOSEARCH g FROMLONLAT 13 38 BYRADIUS 10 km
"""

STREAMS = f"""
; {STREAM}; XLEN s
; {STREAM}; XREAD STREAMS s 0
; {STREAM}; XREVRANGE s + -
{TAKEN}; XACK s g 1-1; XPENDING s g
{TAKEN}; XAUTOCLAIM s g other 0 0; XPENDING s g
{TAKEN}; XCLAIM s g other 0 1-1; XPENDING s g
{STREAM}; XDEL s 1-1; XRANGE s - +
{STREAM}; XGROUP CREATE s g 0; XINFO GROUPS s
{GROUP}; XGROUP CREATECONSUMER s g c; XINFO CONSUMERS s g
{TAKEN}; XGROUP DELCONSUMER s g c; XPENDING s g
{GROUP}; XGROUP DESTROY s g; XINFO GROUPS s
{GROUP}; XGROUP SETID s g 1-1; XINFO GROUPS s
{GROUP}; XREADGROUP GROUP g c STREAMS s >; XPENDING s g
{STREAM}; XSETID s 9-9; XINFO STREAM s
{STREAM}; XTRIM s MAXLEN 0; XLEN s
"""

TABLES = {
    "strings": STRINGS,
    "hashes": HASHES,
    "lists": LISTS,
    "sets": SETS,
    "sorted sets": SORTED_SETS,
    "places": PLACES,
    "streams": STREAMS,
}
