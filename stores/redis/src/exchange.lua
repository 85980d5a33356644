-- One exchange with a cluster's records: first its writes, then its reads.
--
-- KEYS[1]  a hash: key of a record -> its value, as it is
-- KEYS[2]  a hash: key of a record -> its stamp, a blank, and when it was written (Unix time, ms)
-- KEYS[3]  a sorted set of the keys, all with score 0, so that prefixes can be read in order
-- ARGV[1]  the channel for hints
-- ARGV[2]  how many writes there are
-- ARGV[3]  what they are: "put" if at least one puts, "delete" if all delete, "read" for none
-- ARGV[4…] each write: kind (create, swap, delete), key, value, stamp, expected stamp, hint (1)
--          then each read: kind (key, prefix), key, the stamp that the reader has ("" for none)
-- Answers  the time (ms), a letter for each write, and an answer to each read.

-- Redis 6 replicates scripts as they are unless told to replicate what they did.
if redis.replicate_commands then redis.replicate_commands() end

local records, stamps, index = KEYS[1], KEYS[2], KEYS[3]
local count, mode = tonumber(ARGV[2]), ARGV[3]

-- Whatever could fail does so here, before the first write: a replica, a full memory, a failing
-- disk, missing rights, keys that hold something else. Each of these commands writes, as far as
-- Redis is concerned, and changes nothing. A read asks too, because a replica may be stale.
local gates = { { 'HDEL', stamps, '' } }
if mode == 'put' then table.insert(gates, 1, { 'ZADD', index, 'XX', '0', '' }) end
if mode ~= 'read' then
  table.insert(gates, { 'HDEL', records, '' })
  table.insert(gates, { 'ZREM', index, '' })
end
for _, gate in ipairs(gates) do
  local reply = redis.pcall(unpack(gate))
  if type(reply) == 'table' and reply.err then return reply end
end

local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

-- The version and the time in an entry of the second hash. A person may have changed it.
local function parsed(stamp)
  local version, written = string.match(stamp, '^(.*) (%d+)$')
  if version then return version, tonumber(written) end
  return stamp, -1
end

-- The version of a record, or nil if there is none. A value without a stamp, which only a person
-- can have left behind, is there all the same.
local function version_of(key)
  local stamp = redis.call('HGET', stamps, key)
  if stamp then return (parsed(stamp)) end
  if redis.call('HEXISTS', records, key) == 1 then return '' end
  return nil
end

local place, outcomes, hint = 4, {}, false
for number = 1, count do
  local kind, key, value, stamp = ARGV[place], ARGV[place + 1], ARGV[place + 2], ARGV[place + 3]
  local expected, hinted = ARGV[place + 4], ARGV[place + 5]
  place = place + 6
  if kind == 'delete' then
    redis.call('HDEL', records, key)
    redis.call('HDEL', stamps, key)
    redis.call('ZREM', index, key)
    outcomes[number] = 'd'
  else
    local found = version_of(key)
    if (kind == 'create' and found == nil) or (kind == 'swap' and found == expected) then
      redis.call('HSET', stamps, key, stamp .. ' ' .. now)
      redis.call('HSET', records, key, value)
      if kind == 'create' then redis.call('ZADD', index, '0', key) end
      hint = hint or hinted == '1'
      outcomes[number] = 'a'
    else
      outcomes[number] = 'r'
    end
  end
end

local function one(key, unless)
  local stamp, value = redis.call('HGET', stamps, key), nil
  if stamp and unless ~= '' and (parsed(stamp)) == unless then return 1 end
  value = redis.call('HGET', records, key)
  if not stamp and not value then return 0 end
  local version, written = parsed(stamp or '')
  return { value or '', version, written }
end

local function below(prefix)
  local keys
  if prefix == '' then
    keys = redis.call('ZRANGEBYLEX', index, '-', '+')
  else
    -- Keys are ASCII, so all that start with the prefix come before this.
    keys = redis.call('ZRANGEBYLEX', index, '[' .. prefix, '(' .. prefix .. '\255')
  end
  local found, size = {}, 0
  -- Lua can't pass more than a few thousand arguments at once.
  for first = 1, #keys, 500 do
    local last = math.min(first + 499, #keys)
    local some = redis.call('HMGET', stamps, unpack(keys, first, last))
    local values = redis.call('HMGET', records, unpack(keys, first, last))
    for number = 1, last - first + 1 do
      local stamp, value = some[number], values[number]
      if stamp or value then
        local version, written = parsed(stamp or '')
        found[size + 1], found[size + 2] = keys[first + number - 1], value or ''
        found[size + 3], found[size + 4] = version, written
        size = size + 4
      end
    end
  end
  return found
end

local answers = {}
while ARGV[place] do
  local kind, key, unless = ARGV[place], ARGV[place + 1], ARGV[place + 2]
  place = place + 3
  if kind == 'key' then
    answers[#answers + 1] = one(key, unless)
  else
    answers[#answers + 1] = below(key)
  end
end

-- A hint that can't be sent is a hint that was lost, and no reason to call the writes off.
if hint then redis.pcall('PUBLISH', ARGV[1], '') end

return { now, table.concat(outcomes), answers }
