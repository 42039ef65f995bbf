-- check reads flows and changes nothing.
--
-- KEYS  4… flow hash of each key's user
-- ARGV  6… token of each key
-- Reply head, then per key the flow or -. Flows are given in every state of the record.
local out = { head() }
for i = 1, #KEYS - 3 do
  out[i + 1] = redis.call('HGET', KEYS[i + 3], ARGV[i + 5]) or '-'
end
return table.concat(out, ' ')
