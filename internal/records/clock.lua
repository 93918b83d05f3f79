-- What scripts include that may be done only for a while after they were sent. See clock.go.
-- ARGV[1] when it was sent, in Unix µs by Redis's clock as far as the process knows it; 0: it does not
-- ARGV[2] for how many µs after that it may be done

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = math.abs(now - ARGV[1]) > tonumber(ARGV[2]) -- it has come too late, or by a clock that is wrong
