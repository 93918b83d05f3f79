local function script()
-- Ends the sessions of a user whose list or mark is lost.
-- KEYS[1] mark   KEYS[2] list   ARGV[1] number of the call
-- Returns 1: one of them is lost, or there are no sessions; 0: both exist.
-- The part of scripts on the mark of a user. The mark consists of: an epoch; the sessions of earlier
-- epochs that are still alive, each after a space; the entries of unclaimed sessions, see unclaimed.lua; and
-- the remembered calls of EndAll, the last one first, each after a comma: SECONDS+MICROSECONDS of Redis's
-- clock, a colon, and the name. See user.go and clock.go.

local nobody = '000000000000000' -- the epoch of no session

-- over ends the sessions of a user whose list or mark is lost.
local function over(list, marked, mark)
  redis.call('DEL', list)
  if mark then
    redis.call('SET', marked, nobody .. (string.match(mark, ',.*') or ''), 'KEEPTTL')
  end
end

local mark = redis.call('GET', KEYS[1])
if mark and redis.call('PTTL', KEYS[2]) ~= -2 then -- rule: a list and a mark that are there stay
  return 0
end
over(KEYS[2], KEYS[1], mark)
return 1

end

-- The frame. A reply carries the number of its call, which is ARGV[1] of each script: see package
-- scripting.
local reply, call = script(), tonumber(ARGV[1])
if type(reply) == 'number' then
  return 4 * call + reply
elseif not reply.err then
  reply[#reply + 1] = call
end
return reply
