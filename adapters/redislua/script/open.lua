-- open lets buyers in.
--
-- ARGV  6 epoch that the record must have been rebuilt by
-- Reply head of the record as it was, then 1 if it is open now, or 0 refused
local before = head()
if (state ~= 'S' and state ~= 'O') or epoch ~= tonumber(ARGV[6]) then return before .. ' 0' end
if shut then
  redis.call('HSET', KEYS[1], 'shut', '0')
  save()
end
return before .. ' 1'
