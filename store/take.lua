-- Takes the lock and reads the record. What is not there takes no lock.
-- KEYS[1] record   KEYS[2] lock
-- ARGV[1] token    ARGV[2] lease in ms   ARGV[3] largest size in bytes
-- ARGV[4] now, Unix ms   ARGV[5] lifetime in ms
-- Returns a state as scripts.go tells, and what follows it.
local record = redis.pcall('GET', KEYS[1])
local foreign = type(record) == 'table'
if foreign and not string.find(record.err, 'WRONGTYPE', 1, true) then
  return record
end
if not record then
  -- A replica that has not heard of the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return {2}
end
if not foreign then
  -- A record tells when it was created, a tombstone since when it is gone.
  local what, when = string.match(record, '^{"v":1,"stamp":"%w+","(%a+)":(%d+)[,}]')
  if what == 'gone' then
    return {3}
  end
  if what == 'created' and when + ARGV[5] <= tonumber(ARGV[4]) then
    return {2}
  end
end
if not redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
  -- It may be our own, from a try whose reply was lost.
  local holder = redis.call('GET', KEYS[2])
  if holder ~= ARGV[1] then
    return {0, holder}
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
if foreign then
  return {5}
end
if #record > tonumber(ARGV[3]) then
  return {4, #record}
end
return {1, record}
