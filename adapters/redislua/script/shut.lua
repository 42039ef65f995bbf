-- shut stops deductions; where there is no record it does nothing.
--
-- Reply head of the record as it was, then 1 if it is shut now, else 0
local before = head()
if not loaded then return before .. ' 0' end
if not shut then
  redis.call('HSET', KEYS[1], 'shut', '1')
  save()
end
return before .. ' 1'
