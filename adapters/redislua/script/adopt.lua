-- adopt takes the units of stragglers, whatever window, pause and limit say.
--
-- KEYS  4… flow hash of each item's user
-- ARGV  6 now in milliseconds · then per item: user, token, quantity, attempt ("" where the message names none)
-- Reply head, then per item, if the state is O: H+flow held, N no room, T released or refused,
--       W the key holds another quantity: its own message decides
-- Error INVALID quantity, attempt or time: no item of the call was carried out.
local now = ARGV[6]
if not whole(now) then return redis.error_reply('INVALID time') end
for i = 1, #KEYS - 3 do
  if not units(ARGV[4 * i + 5]) then return redis.error_reply('INVALID quantity') end
  if ARGV[4 * i + 6] ~= '' and not named(ARGV[4 * i + 6]) then return redis.error_reply('INVALID attempt') end
end
if state ~= 'O' then return head() end

local last = seq
local function decide(key, user, token, quantity, attempt)
  local packed = flow(key, user, token)
  if packed then
    local letter, taken = string.match(packed, '^(%a)|(%d+)|')
    if letter ~= 'D' and letter ~= 'S' then return 'T' end
    if taken ~= quantity then return 'W' end
    return 'H' .. packed
  end
  local wanted = tonumber(quantity)
  if remaining < wanted then return 'N' end
  last = last + 1
  packed = pack('D', quantity, text(remaining), text(last), text(epoch), now, attempt)
  remaining = remaining - wanted
  put(key, user, token, packed, false)
  return 'H' .. packed
end

local out = { '' }
for i = 1, #KEYS - 3 do
  local at = 4 * i + 3
  out[i + 1] = decide(KEYS[i + 3], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
if last > seq then save(last) end
out[1] = head()
return table.concat(out, ' ')
