-- writeback writes rows as flows in the state of their row, and takes them out of the open set.
--
-- KEYS  4… flow hash of each row's user
-- ARGV  6 epoch of the attempt · then per row: user, token, quantity, letter, epoch, sequence, milliseconds, attempt
-- Reply head of the record as it was, then 1 done or 0 refused
-- Error INVALID quantity or number: no row of the call was written.
local before = head()
for i = 1, #KEYS - 3 do
  local at = 8 * i - 1
  if not units(ARGV[at + 2]) then return redis.error_reply('INVALID quantity') end
  for j = 4, 6 do
    if not whole(ARGV[at + j]) then return redis.error_reply('INVALID number') end
  end
end
if not loaded or server ~= here or building ~= tonumber(ARGV[6]) then return before .. ' 0' end
for i = 1, #KEYS - 3 do
  local at, key = 8 * i - 1, KEYS[i + 3]
  local user, token, quantity, letter = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local packed = flow(key, user, token)
  if packed and string.match(packed, '^%a|(%d+)|') == quantity then
    packed = letter .. string.sub(packed, 2) -- the flow knows more than the row: from how much, when, by which call
  else
    packed = pack(letter, quantity, '', ARGV[at + 5], ARGV[at + 4], ARGV[at + 6], ARGV[at + 7])
  end
  put(key, user, token, packed, nil, true)
end
if #KEYS > 3 then save() end
return before .. ' 1'
