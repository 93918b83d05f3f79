-- Ends the sessions of a user of whom the list or the mark is lost.
-- KEYS[1] list   KEYS[2] mark
-- ARGV[1] the number of the call
-- Returns 1: one of them is, or there are no sessions; 0: both are there.
-- include mark.lua
local mark = redis.call('GET', KEYS[2])
if mark and redis.call('PTTL', KEYS[1]) ~= -2 then -- rule: a list and a mark that are there stay
  return 0
end
over(KEYS[1], KEYS[2], mark)
return 1
