-- Ends the sessions of a user whose list or mark is lost.
-- KEYS[1] mark   KEYS[2] list   ARGV[1] number of the call
-- Returns 1: one of them is lost, or there are no sessions; 0: both exist.
{{template "mark"}}
local mark = redis.call('GET', KEYS[1])
if mark and redis.call('PTTL', KEYS[2]) ~= -2 then -- rule: a list and a mark that are there stay
  return 0
end
over(KEYS[2], KEYS[1], mark)
return 1
