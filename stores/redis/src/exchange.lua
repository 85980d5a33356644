-- One exchange with a cluster's records: first its writes, then its reads.
--
-- KEYS[1]  a hash with two fields a record: under its key its value, as it is; under its key and
--          an @ its stamp, a blank, and when it was written (Unix time in ms)
-- KEYS[2]  a sorted set of the keys, all with score 0, so that prefixes can be read in order
-- ARGV[1]  the channel for hints
-- ARGV[2]  how many writes there are
-- ARGV[3]  "index" if the sorted set has to be tried first; "look" from who may only read
-- ARGV[4]  "delete" if some writes delete
-- ARGV[5…] each write: kind (create, swap, delete), key, value, stamp, expected stamp, hint (1)
--          then each read: kind (key, prefix), key, the stamp that the reader has ("" for none)
-- Answers  the time, a letter for each write, and an answer to each read.

-- Redis 6 replicates scripts as they are unless told to replicate what they did.
if redis.replicate_commands then redis.replicate_commands() end

local call, records, index = redis.call, KEYS[1], KEYS[2]

-- Whatever could fail has to fail before the first write: on a replica, a full memory, a failing
-- disk, missing rights, keys that hold something else. A swap is safe by itself, for all that it
-- does is one command. For the rest these commands ask: they write, as far as Redis is concerned,
-- and change nothing.
local function refused(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then return reply end
  return nil
end
local refusal = nil
if ARGV[3] == 'index' then refusal = refused('ZADD', index, 'XX', '0', '') end
if ARGV[4] == 'delete' then
  refusal = refusal or refused('ZREM', index, '') or refused('HDEL', records, '')
end
if refusal then return refusal end

local time = call('TIME')
-- Seconds and the first three of six digits; formatting numbers would take longer than a write.
local now = time[1] .. string.sub('00000' .. time[2], -6, -4)

-- The version of a record, or nil if there is none. A value without a stamp, which only a person
-- can have left behind, is there all the same.
local function version_of(key)
  local stamp = call('HGET', records, key .. '@')
  if stamp then
    local blank = string.find(stamp, ' ', 1, true)
    return blank and string.sub(stamp, 1, blank - 1) or stamp
  end
  if call('HEXISTS', records, key) == 1 then return '' end
  return nil
end

-- Whether there is nothing under this key, told by one command where most have nothing.
local function is_absent(key)
  local found = call('HMGET', records, key .. '@', key)
  return not found[1] and not found[2]
end

-- New keys go into the index together. Lua can't pass more than a few thousand arguments at once.
local fresh = {}
local function add_to_index()
  if #fresh > 0 then call('ZADD', index, unpack(fresh)) end
  fresh = {}
end

local place, outcomes, wrote, hint = 5, {}, false, false
for number = 1, tonumber(ARGV[2]) do
  local kind, key = ARGV[place], ARGV[place + 1]
  if kind == 'delete' then
    -- It may be one of those.
    add_to_index()
    call('HDEL', records, key, key .. '@')
    call('ZREM', index, key)
    outcomes[number], wrote = 'd', true
  else
    local fits
    if kind == 'create' then
      fits = is_absent(key)
    else
      fits = version_of(key) == ARGV[place + 4]
    end
    if fits then
      local stamp = ARGV[place + 3] .. ' ' .. now
      call('HSET', records, key, ARGV[place + 2], key .. '@', stamp)
      if kind == 'create' then
        fresh[#fresh + 1], fresh[#fresh + 2] = '0', key
        if #fresh >= 1000 then add_to_index() end
      end
      hint = hint or ARGV[place + 5] == '1'
      outcomes[number], wrote = 'a', true
    else
      outcomes[number] = 'r'
    end
  end
  place = place + 6
end
add_to_index()

-- A replica may be stale, so whoever wrote nothing asks whether this is one. Who may only read
-- isn't told, as the server looks at rights first.
if not wrote then
  refusal = refused('HDEL', records, '')
  local readonly = refusal and string.find(refusal.err, 'READONLY', 1, true)
  if refusal and (readonly or ARGV[3] ~= 'look') then return refusal end
end

local function one(key, unless)
  if unless ~= '' and version_of(key) == unless then return 1 end
  local found = call('HMGET', records, key, key .. '@')
  if not found[1] and not found[2] then return 0 end
  return { found[1] or '', found[2] or '' }
end

local function below(prefix)
  -- Keys are ASCII, so all that start with the prefix come before its last possible letter.
  local last = prefix == '' and '+' or '(' .. prefix .. '\255'
  local keys = call('ZRANGEBYLEX', index, '[' .. prefix, last)
  local found, size = {}, 0
  -- Lua can't pass more than a few thousand arguments at once.
  for first = 1, #keys, 500 do
    local fields = {}
    for number = first, math.min(first + 499, #keys) do
      fields[#fields + 1], fields[#fields + 2] = keys[number], keys[number] .. '@'
    end
    local values = call('HMGET', records, unpack(fields))
    for number = 1, #fields, 2 do
      local value, stamp = values[number], values[number + 1]
      if value or stamp then
        found[size + 1], found[size + 2], found[size + 3] = fields[number], value or '', stamp or ''
        size = size + 3
      end
    end
  end
  return found
end

local answers, size = {}, 0
while ARGV[place] do
  size = size + 1
  if ARGV[place] == 'key' then
    answers[size] = one(ARGV[place + 1], ARGV[place + 2])
  else
    answers[size] = below(ARGV[place + 1])
  end
  place = place + 3
end

-- A hint that can't be sent is a hint that was lost, and no reason to call the writes off.
if hint then redis.pcall('PUBLISH', ARGV[1], '') end

return { now, table.concat(outcomes), answers }
