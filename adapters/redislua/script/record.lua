-- record.lua stands in front of every script below that reads a stock record.
--
-- KEYS  1 stock record · 2 open set · 3 flow hash of the caller's newest own flow · 4… the script's own
-- ARGV  1 server identity, "" to read it here · 2 epoch and 3 sequence that the caller has seen
--       4 token of the caller's newest own flow, "" for none · 5 most units of one command · 6… the script's own
-- Reply one line, fields apart by a space. The first is the head, state|epoch|sequence|remaining:
--       A no record (or a damaged one) · W rewound · B being built · S shut · O open
-- Error NOIDENTITY where the server does not say who it is, INVALID where an argument is malformed;
--       both come before the first write.
local here = ARGV[1]
if here == '' then
  local info = redis.pcall('INFO', 'replication')
  here = type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
  if here == '' then return redis.error_reply('NOIDENTITY INFO replication gives no master_replid') end
end

local got = redis.call('HMGET', KEYS[1], 'server', 'epoch', 'seq', 'remaining', 'base', 'told', 'building',
  'shut', 'opens', 'closes', 'limit', 'paused', 'rev', 'open')
local loaded = got[1] and true or false
local n = {}
for i = 2, 14 do -- missing is never zero, and what is no number was not written here
  if not got[i] or not string.match(got[i], '^%d+$') then loaded = false end
  n[i] = loaded and tonumber(got[i]) or 0
end
local server, epoch, seq, remaining, base, told = got[1], n[2], n[3], n[4], n[5], n[6]
local building, shut, opens, closes, limit, paused, rev = n[7], n[8] == 1, n[9], n[10], n[11], n[12] == 1, n[13]

-- The record counts the members of the open set, so that a set which was deleted or evicted is noticed.
local open_count = n[14]
local lost = loaded and redis.call('ZCARD', KEYS[2]) ~= open_count

-- Lua prints 1e14 as 1e+14: every number that goes back to Redis goes through here.
local function text(number) return string.format('%.0f', number) end

-- units is the number of a strict positive decimal within the maximum, or nil.
local function units(s)
  if #s > 15 or not string.match(s, '^[1-9]%d*$') then return nil end
  local number = tonumber(s)
  return number <= tonumber(ARGV[5]) and number or nil
end

local function whole(s) return #s <= 15 and string.match(s, '^%d+$') ~= nil end

-- rewound compares the record with the server, with its open set and with what the caller has seen. A rebuild under an
-- epoch that the caller has not seen ends the caller's memory.
local function rewound()
  if server ~= here or lost then return true end
  local seen = tonumber(ARGV[2])
  if building > seen then return false end
  if epoch ~= seen then return epoch < seen end
  return seq < tonumber(ARGV[3]) or (ARGV[4] ~= '' and redis.call('HEXISTS', KEYS[3], ARGV[4]) == 0)
end

local state = 'O'
if not loaded then state = 'A'
elseif rewound() then state = 'W'
elseif building > 0 or epoch == 0 then state = 'B'
elseif shut then state = 'S' end

local function head() return state .. '|' .. text(epoch) .. '|' .. text(seq) .. '|' .. text(remaining) end

-- A flow is state|quantity|from|sequence|epoch|milliseconds|attempt, from being empty where nobody saw it.
-- States: D deducted, S settled, C released, T refused for good.
local function pack(letter, quantity, from, sequence, of_epoch, ms, attempt)
  return letter .. '|' .. quantity .. '|' .. from .. '|' .. sequence .. '|' .. of_epoch .. '|' .. ms .. '|' .. attempt
end

-- flow reads a flow, what this call is about to write included. One that is deducted and not in the open set
-- is of a set that was lost: the rebuild has not counted its units, so it is as good as absent.
local pending, epoch_text = {}, text(epoch)
local function flow(key, user, token)
  local member = user .. '|' .. token
  if pending[member] then return pending[member] end
  local packed = redis.call('HGET', key, token)
  if packed and string.byte(packed) == 68 and string.match(packed, '^D|%d*|%d*|%d*|(%d*)|') ~= epoch_text
    and not redis.call('ZSCORE', KEYS[2], member) then return false end
  return packed
end

-- Writes wait in lists until every check of the call is done. score is the sequence of a flow that
-- goes into the open set; leaves is true for one that may be in it and goes out.
local hash_writes, opened, closed = {}, {}, {}
local function put(key, user, token, packed, score, leaves)
  local member = user .. '|' .. token
  pending[member] = packed
  hash_writes[#hash_writes + 1] = { key, token, packed }
  if score then
    opened[#opened + 1] = score
    opened[#opened + 1] = member
  elseif leaves then
    closed[#closed + 1] = member
  end
end

-- take deducts wanted units as a new open flow, the next in sequence.
local last = seq
local function take(key, user, token, quantity, wanted, ms, attempt)
  last = last + 1
  local score = text(last)
  local packed = pack('D', quantity, text(remaining), score, epoch_text, ms, attempt)
  remaining = remaining - wanted
  put(key, user, token, packed, score, false)
  return packed
end

-- save writes the lists, remaining, told and the size of the open set, and raises the sequence: to that of the last flow taken, or by one.
local function save()
  for i = 1, #hash_writes do
    redis.call('HSET', hash_writes[i][1], hash_writes[i][2], hash_writes[i][3])
  end
  if #opened > 0 then open_count = open_count + redis.call('ZADD', KEYS[2], unpack(opened)) end
  if #closed > 0 then open_count = open_count - redis.call('ZREM', KEYS[2], unpack(closed)) end
  seq = last > seq and last or seq + 1
  redis.call('HSET', KEYS[1], 'remaining', text(remaining), 'told', text(told), 'seq', text(seq),
    'open', text(open_count))
end
