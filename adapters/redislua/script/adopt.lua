-- adopt takes the units of stragglers, whatever window, pause and limit say.
--
-- KEYS  4… flow hash of each item's user
-- ARGV  6 now in milliseconds · then per item: user, token, quantity, attempt ("" where the message names none)
-- Reply head, then per item, if the state is O: H+flow held, N no room, T released or refused,
--       W the key holds another quantity: its own message decides
-- Error INVALID quantity or time: no item of the call was carried out.
local now = ARGV[6]
if not whole(now) then return redis.error_reply('INVALID time') end
for i = 1, #KEYS - 3 do
  if not units(ARGV[4 * i + 5]) then return redis.error_reply('INVALID quantity') end
end
if state ~= 'O' then return head() end

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
  return 'H' .. take(key, user, token, quantity, wanted, now, attempt)
end

local out = { '' }
for i = 1, #KEYS - 3 do
  local at = 4 * i + 3
  out[i + 1] = decide(KEYS[i + 3], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
if last > seq then save() end
out[1] = head()
return table.concat(out, ' ')
