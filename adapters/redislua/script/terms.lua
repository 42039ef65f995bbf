-- terms takes an operator's newer terms.
--
-- ARGV  6 opens · 7 closes · 8 limit · 9 paused · 10 revision
-- Reply head of the record as it was, then 1 taken or 0 refused
local before = head()
for i = 6, 10 do
  if not whole(ARGV[i]) then return redis.error_reply('INVALID number') end
end
if not loaded or server ~= here or tonumber(ARGV[10]) <= rev then return before .. ' 0' end
redis.call('HSET', KEYS[1], 'opens', ARGV[6], 'closes', ARGV[7], 'limit', ARGV[8], 'paused', ARGV[9], 'rev', ARGV[10])
save()
return before .. ' 1'
