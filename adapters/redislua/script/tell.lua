-- tell moves flows as the settling table says, and keeps the highest stock version told.
--
-- KEYS  4… flow hash of each fate's user
-- ARGV  6… per fate: user, token, quantity, status (confirmed, cancelled, voided = cancelled from birth, rejected,
--       added = a stock change that put units on sale), stock version, epoch and sequence of the flow, milliseconds
-- A confirmed order that was deducted in this epoch has its flow here, of that very sequence; any other
-- finding proves that the flow was lost.
-- Reply head, then per fate, if the state is O or S: D done, X done and the gate has been proved wrong
-- Error INVALID quantity or number: no fate of the call was taken.
for i = 1, #KEYS - 3 do
  local at = 8 * i - 2
  if not units(ARGV[at + 2]) then return redis.error_reply('INVALID quantity') end
  for j = 4, 7 do
    if not whole(ARGV[at + j]) then return redis.error_reply('INVALID number') end
  end
end
if state ~= 'O' and state ~= 'S' then return head() end

-- move gives the flow's letter afterwards, what remaining gains, and whether the gate has been proved wrong.
local function move(status, letter, newer, quantity)
  if status == 'confirmed' then
    if letter == 'D' then return 'S', 0, false end
    if letter == '-' then
      if not newer then return 'S', 0, false end
      if remaining < quantity then return 'S', 0, true end
      return 'S', -quantity, false
    end
  elseif status == 'cancelled' or status == 'voided' then
    if letter == 'D' then return 'C', quantity, false end
    if letter == 'S' then
      if status == 'voided' then return 'S', 0, true end
      return 'C', newer and quantity or 0, false
    end
    if letter == '-' then return 'C', 0, false end
  elseif status == 'rejected' then
    if letter == 'D' then return 'T', quantity, false end
    if letter == 'S' then return 'S', 0, true end
    if letter == '-' then return 'T', 0, false end
  elseif status == 'added' then
    if letter == '-' then return 'S', newer and quantity or 0, false end
    return letter, 0, letter ~= 'S'
  end
  return letter, 0, false
end

-- forgotten reports whether the gate has lost the flow of a confirmed order.
local function forgotten(status, packed, letter, of_epoch, sequence)
  if status ~= 'confirmed' or of_epoch ~= epoch_text or epoch == 0 then return false end
  if letter == 'D' then
    local own, its = string.match(packed, '^D|%d*|%d*|(%d*)|(%d*)|')
    return its == of_epoch and own ~= sequence
  end
  return letter == '-'
end

local changed = false
local out = { '' }
for i = 1, #KEYS - 3 do
  local at, key = 8 * i - 2, KEYS[i + 3]
  local user, token, quantity, version = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 4])
  local packed = flow(key, user, token)
  local letter = packed and string.sub(packed, 1, 1) or '-'
  local to, gained, suspect = move(ARGV[at + 3], letter, version > base, tonumber(quantity))
  if forgotten(ARGV[at + 3], packed, letter, ARGV[at + 5], ARGV[at + 6]) then suspect = true end
  if to ~= letter then
    local now_packed = packed and to .. string.sub(packed, 2)
      or pack(to, quantity, '', ARGV[at + 6], ARGV[at + 5], ARGV[at + 7], '')
    put(key, user, token, now_packed, nil, letter == 'D' or letter == '-')
    remaining = remaining + gained
    changed = true
  end
  if version > told then told, changed = version, true end
  out[i + 1] = suspect and 'X' or 'D'
end
if changed then save() end
out[1] = head()
return table.concat(out, ' ')
