-- Removes a place from the queue, and releases the lock if the place has just got its turn.
-- KEYS[1] lock   KEYS[2] queue   ARGV[1] number of the call   ARGV[2] place
-- Returns {1}: done.
{{template "queue"}}
quit(KEYS[2], ARGV[2]) -- rule: a place that gives up leaves the queue
if redis.pcall('GET', KEYS[1]) == ARGV[2] then
  free(KEYS[1], KEYS[2])
end
return {1}
