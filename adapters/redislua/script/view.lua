-- view reads a record and its open set, and changes nothing.
--
-- Reply head, then same server (0 or 1)|rewound|shut|base|told|building|server|revision|open flows|first open member
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1] or '|'
local function flag(b) return b and '1' or '0' end
return head() .. ' ' .. table.concat({ flag(loaded and server == here), flag(state == 'W'), flag(loaded and shut),
  text(base), text(told), text(building), loaded and server or '', text(rev), text(redis.call('ZCARD', KEYS[2])),
  first }, '|')
