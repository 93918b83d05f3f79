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
