-- Takes the lock and reads the record. What is not there takes no lock.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- ARGV[1] token    ARGV[2] lease in ms   ARGV[3] largest size in bytes
-- ARGV[4] Unix ms: what was created then or before has reached its lifetime
-- ARGV[5] place in the queue, '' for none
-- Returns a state as scripts.go tells, and what follows it. After a record that is 1
-- if other processes wait.
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
  if what == 'created' and tonumber(when) <= tonumber(ARGV[4]) then
    return {2}
  end
end
local token, place = ARGV[1], ARGV[5]
if not redis.call('SET', KEYS[2], token, 'NX', 'PX', ARGV[2]) then
  local holder = redis.call('GET', KEYS[2])
  if place ~= '' and holder == place then -- our turn has come
    redis.call('SET', KEYS[2], token, 'PX', ARGV[2])
  elseif holder == token then -- our own, from a try whose reply was lost
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
  elseif place == '' then
    return {0, holder}
  else
    local left = redis.pcall('PTTL', KEYS[2])
    return {0, holder, type(left) == 'number' and left or 0, join(KEYS[3], place)}
  end
elseif place ~= '' then
  quit(KEYS[3], place)
end
if foreign then
  return {5}
end
if #record > tonumber(ARGV[3]) then
  return {4, #record}
end
if place == '' then
  return {1, record} -- without a queue, and without asking for it
end
return {1, record, waiting(KEYS[3]) ~= '' and 1 or 0}
