"""The script that keeps the stored lineage of a key in step with what a command did to it.

It runs on the primary in the transaction of the command, and what it writes is replicated with
the command's own effects. It parses lineages (docs/spec/lineage-format.md) as far as merging needs
and keeps one position of each log, so that a thousand updates are one entry.
"""

from __future__ import annotations

from hashlib import sha1

_SOURCE = """
local key, beside, text, mode = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local function held(name)
  local found = redis.pcall('GET', name)
  return type(found) == 'string' and found
end
local old, slots, rest, newest = held(beside), {}, {}, 0
local function write(item, hour)
  local head, stamp, tail = item:match('^([urkURK][^.]*)[.]([^.]*)[.](.*)$')
  if not head then return false end
  local version, age, minted = stamp, nil, 0
  if stamp:sub(1, 1) ~= '_' and stamp:find('-', 1, true) then
    age, version = stamp:match('^(.-)-(.*)$')
  end
  if hour ~= '' and age ~= '' then
    minted = tonumber(hour, 36) - (age and tonumber(age, 36) or 0)
  end
  local slot = head .. '.' .. tail
  if version:sub(1, 1) == '_' then slot = slot .. '.' .. version end
  local has = slots[slot]
  local v = has and has[1]
  if not v or #version > #v or #version == #v and version > v
    or version == v and minted > has[2] then
    slots[slot] = {version, minted, head, tail}
  end
  if minted > newest then newest = minted end
  return true
end
local function add(body)
  local hour, parts, at = body:match('^1(%w*)'), {}, 1
  if not hour then
    rest['iunreadable.-'] = true
    return
  end
  for part in body:gmatch('~([^~]*)') do parts[#parts + 1] = part end
  while at <= #parts do
    local last = at + tonumber(parts[at]:match('^z(%w+)[.]') or '0', 36)
    local item = table.concat(parts, '~', at, last)
    if not write(item, hour) then rest[item] = true end
    at = last + 1
  end
end
local function take(companion)
  if companion then add(companion:match('|(.*)') or '') end
end
local function base36(n)
  local out = ''
  repeat
    local d = n % 36
    out, n = string.char(d < 10 and 48 + d or 87 + d) .. out, (n - d) / 36
  until n == 0
  return out
end
local mark, kind = '~', redis.call('TYPE', key).ok
if kind == 'none' then mark = '-'
elseif kind == 'string' then mark = redis.sha1hex(redis.call('GET', key)):sub(1, 16) end
local replaced = false
if mode == 'd' then replaced = mark == '-' and not (old and old:sub(1, 2) == '-|')
elseif mode == 'e' then replaced = mark == ARGV[5]
elseif mode == 'f' then
  replaced = #mark > 1 and (held(KEYS[3]) or ''):sub(1, #mark) == mark
end
add(text)
if not replaced then take(old) end
for at = 3, #KEYS do take(held(KEYS[at])) end
local items = {}
for _, has in pairs(slots) do
  local age = ''
  if has[2] ~= newest then age = (has[2] == 0 and '' or base36(newest - has[2])) .. '-' end
  items[#items + 1] = has[3] .. '.' .. age .. has[1] .. '.' .. has[4]
end
for item in pairs(rest) do items[#items + 1] = item end
table.sort(items)
local merged = '1' .. (newest > 0 and base36(newest) or '')
if #items > 0 then merged = merged .. '~' .. table.concat(items, '~') end
if #merged > tonumber(ARGV[4]) then merged = text .. '~isize.-' end
local left = redis.call('PTTL', key)
if mark == '-' then left = tonumber(ARGV[3]) end
if left < 0 then redis.call('SET', beside, mark .. '|' .. merged)
else redis.call('SET', beside, mark .. '|' .. merged, 'PX', math.max(left, 1)) end
return old
"""

#: As it is sent: without what only people need.
SCRIPT = "\n".join(line.strip() for line in _SOURCE.strip().splitlines())
#: By what it is called again in the same transaction.
SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
