-- adopt takes the units of stragglers, whatever window, pause and limit say.
--
-- KEYS  4… flow hash of each item's user
-- ARGV  6 now in milliseconds · then per item: user, token, quantity, attempt ("" where the message names none),
--       what becomes of a key without flow and units: "" nothing, T a tombstone, R a tombstone in any case
-- Reply head, then per item, if the state is O: H+flow held, N no room, T released or refused,
--       Q the key holds another quantity: its own message decides
-- Error INVALID quantity or time: no item of the call was carried out.
local now = ARGV[6]
if not whole(now) then return redis.error_reply('INVALID time') end
for i = 1, #KEYS - 3 do
  if not units(ARGV[5 * i + 4]) then return redis.error_reply('INVALID quantity') end
end
if state ~= 'O' then return head() end

local changed = false
local function refuse(key, user, token, quantity)
  put(key, user, token, pack('T', quantity, '', '0', epoch_text, now, ''), nil, false)
  changed = true
end

local function decide(key, user, token, quantity, attempt, otherwise)
  local packed = flow(key, user, token)
  if packed then
    local letter, taken = string.match(packed, '^(%a)|(%d+)|')
    if letter ~= 'D' and letter ~= 'S' then return 'T' end
    if taken ~= quantity then return 'Q' end
    return 'H' .. packed
  end
  if otherwise == 'R' then
    refuse(key, user, token, quantity)
    return 'T'
  end
  local wanted = tonumber(quantity)
  if remaining < wanted then
    if otherwise == 'T' then refuse(key, user, token, quantity) end
    return 'N'
  end
  return 'H' .. take(key, user, token, quantity, wanted, now, attempt)
end

local out = { '' }
for i = 1, #KEYS - 3 do
  local at = 5 * i + 2
  out[i + 1] = decide(KEYS[i + 3], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
end
if changed or last > seq then save() end
out[1] = head()
return table.concat(out, ' ')
