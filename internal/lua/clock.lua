-- The part of scripts that may be done only for a while after they were sent. See clock.go.
-- ARGV[2] when it was sent, in Unix µs by Redis's clock as far as the process knows it; 0: it does not
-- ARGV[3] for how many µs after that it may be done

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = math.abs(now - ARGV[2]) > tonumber(ARGV[3]) -- it has come too late, or by a clock that is wrong
