-- rebuild writes counts, terms and epoch, still shut, if nothing has moved since the plan's numbers were read.
--
-- ARGV  6 epoch of the attempt · 7 sequence and 8 server as read · 9 remaining · 10 stock version
--       11 opens · 12 closes · 13 limit · 14 paused · 15 revision
-- Reply head of the record as it was, then 1 done (also: by an earlier try of this call) or 0 refused
local before, attempt = head(), tonumber(ARGV[6])
for i = 6, 15 do
  if i ~= 8 and not whole(ARGV[i]) then return redis.error_reply('INVALID number') end
end
if not loaded or lost or server ~= here or server ~= ARGV[8] then return before .. ' 0' end
if building == 0 and shut and epoch == attempt and seq == tonumber(ARGV[7]) + 1 then return before .. ' 1' end
if building ~= attempt or epoch >= attempt or seq ~= tonumber(ARGV[7]) then return before .. ' 0' end
redis.call('HSET', KEYS[1], 'epoch', ARGV[6], 'base', ARGV[10], 'building', '0', 'shut', '1',
  'opens', ARGV[11], 'closes', ARGV[12], 'limit', ARGV[13], 'paused', ARGV[14], 'rev', ARGV[15])
remaining, told = tonumber(ARGV[9]), math.max(told, tonumber(ARGV[10]))
save()
return before .. ' 1'
