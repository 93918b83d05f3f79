-- Writes the record (or its tombstone), if it is still the one that was loaded.
-- KEYS[1] record
-- ARGV[1] token   ARGV[2] record   ARGV[3] time to live in ms
-- ARGV[4] SHA-1 of the record that was loaded, in hexadecimal digits, or
--         'foreign' where the key held another Redis type
-- Returns 1: written; 0: another has written, and nothing was changed.
local record = redis.pcall('GET', KEYS[1])
if not record then
  return 0
end
local loaded = 'foreign'
if type(record) == 'string' then
  -- A repetition finds its own stamp.
  local mine = '{"v":1,"stamp":"' .. ARGV[1] .. '"'
  if string.sub(record, 1, #mine) == mine then
    return 1
  end
  loaded = redis.sha1hex(record)
elseif not string.find(record.err, 'WRONGTYPE', 1, true) then
  return record
end
if loaded ~= ARGV[4] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
