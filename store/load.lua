-- Reads the record without the lock, and puts its idle time-out off.
-- KEYS[1] record
-- ARGV[1] now, Unix ms   ARGV[2] idle time-out in ms   ARGV[3] lifetime in ms
-- ARGV[4] largest size in bytes
-- Returns a state as scripts.go tells, and what follows it.
local record = redis.pcall('GET', KEYS[1])
if type(record) == 'table' then
  if string.find(record.err, 'WRONGTYPE', 1, true) then
    return {5}
  end
  return record
end
if not record then
  return {2}
end
if string.find(record, '^{"v":1,"stamp":"%w+","gone":') then
  return {3}
end
local created = tonumber(string.match(record, '^{"v":1,"stamp":"%w+","created":(%d+),'))
if created then
  local left = created + ARGV[3] - ARGV[1]
  if left <= 0 then
    return {2}
  end
  redis.call('PEXPIRE', KEYS[1], math.min(left, tonumber(ARGV[2])))
end
if #record > tonumber(ARGV[4]) then
  return {4, #record}
end
return {1, record}
