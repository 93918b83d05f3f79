-- Removes the record of a new id that came to nothing.
-- KEYS[1] record   ARGV[1] token of its writer
-- Returns 1: removed; 0: it was not there, or not the writer's.
local mine = '{"v":1,"stamp":"' .. ARGV[1] .. '"'
local record = redis.call('GET', KEYS[1])
if record and string.sub(record, 1, #mine) == mine then
  return redis.call('DEL', KEYS[1])
end
return 0
