-- Gives up a place in the queue, and the lock if the turn came to it just now.
-- KEYS[1] lock   KEYS[2] queue   ARGV[1] number of the call   ARGV[2] place
-- Returns {1}: both are gone.
{{template "queue"}}
quit(KEYS[2], ARGV[2]) -- rule: who gives up leaves the queue
if redis.pcall('GET', KEYS[1]) == ARGV[2] then
  free(KEYS[1], KEYS[2])
end
return {1}
