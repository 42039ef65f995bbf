-- prepare begins a rebuild: record made if missing, shut, marked, and taken over by this server with the open
-- set as it is.
--
-- ARGV  6 epoch of the attempt
-- Reply head of the record as it was, then 1 done or 0 refused
local before, attempt = head(), ARGV[6]
if not units(attempt) then return redis.error_reply('INVALID epoch') end
if epoch >= tonumber(attempt) or building > tonumber(attempt) then return before .. ' 0' end
if not loaded then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'epoch', '0', 'base', '0', 'opens', '0', 'closes', '0', 'limit', '0', 'paused', '0',
    'rev', '0')
end
open_count = redis.call('ZCARD', KEYS[2])
redis.call('HSET', KEYS[1], 'shut', '1', 'building', attempt, 'server', here)
save()
return before .. ' 1'
