-- The part of scripts that may take effect only for a while after they were sent. See clock.go.
-- ARGV[2] when it was sent, in Unix µs of Redis's clock as far as the process knows it; 0: unknown
-- ARGV[3] for how many µs after that it may take effect

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = math.abs(now - ARGV[2]) > tonumber(ARGV[3]) -- it has come too late, or with a wrong clock
