-- deduct decides each command in order; a refusal writes nothing.
--
-- KEYS  4… flow hash of each command's user
-- ARGV  6 now in milliseconds · then per command: user, token, quantity, attempt
-- Reply head, then per command, unless the state is A, W or B (nothing decided):
--       A+flow accepted, P+flow repeat, Q+flow conflict, T refused for good, S shut, C closed, L limit, N not enough
-- Error INVALID quantity or time: no command of the call was carried out.
local now = ARGV[6]
if not whole(now) then return redis.error_reply('INVALID time') end
for i = 1, #KEYS - 3 do
  if not units(ARGV[4 * i + 5]) then return redis.error_reply('INVALID quantity') end
end
if state == 'A' or state == 'W' or state == 'B' then return head() end

local not_now = paused or tonumber(now) < opens or (closes > 0 and tonumber(now) >= closes)

-- held is what the user's living flows hold: computed, so that there is no counter to drift.
local held_by = {}
local function held(key)
  if not held_by[key] then
    local sum = 0
    for _, packed in ipairs(redis.call('HVALS', key)) do
      local letter, quantity = string.match(packed, '^(%a)|(%d+)|')
      if letter == 'D' or letter == 'S' then sum = sum + tonumber(quantity) end
    end
    held_by[key] = sum
  end
  return held_by[key]
end

local function known(packed, quantity, attempt)
  local letter, taken, by = string.match(packed, '^(%a)|(%d+)|.*|([^|]*)$')
  if letter == 'T' then return 'T' end
  if taken ~= quantity then return 'Q' .. packed end
  if by == attempt and letter ~= 'C' then return 'A' .. packed end
  return 'P' .. packed
end

local function decide(key, user, token, quantity, attempt)
  local packed = flow(key, user, token)
  if packed then return known(packed, quantity, attempt) end
  local wanted = tonumber(quantity)
  if shut then return 'S' end
  if not_now then return 'C' end
  if limit > 0 and held(key) + wanted > limit then return 'L' end
  if remaining < wanted then return 'N' end
  if limit > 0 then held_by[key] = held_by[key] + wanted end
  return 'A' .. take(key, user, token, quantity, wanted, now, attempt)
end

local out = { '' }
for i = 1, #KEYS - 3 do
  local at = 4 * i + 3
  out[i + 1] = decide(KEYS[i + 3], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
if last > seq then save() end
out[1] = head()
return table.concat(out, ' ')
