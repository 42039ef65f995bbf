-- claim takes or renews the right to relay a product's flows. It stands alone: no record is read.
--
-- KEYS  1 claim
-- ARGV  1 holder · 2 time to live in milliseconds
-- Reply 1 if holder has it now, else 0
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return '0' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return '1'
