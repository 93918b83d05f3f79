-- The part of scripts that compare a record.

-- revisionOf returns the revision of a record, which each write chooses anew. For a value without a
-- revision it returns the SHA-1. So a revision has 16 characters or 40.
local function revisionOf(record)
  local revision = string.match(record, '^{"v":2,"s":"(%w+)"') -- rule: a record is of version 2
  return revision and #revision == 16 and revision or redis.sha1hex(record)
end

-- is reports whether the record at a key has that revision. 'foreign' is the revision of a value that is
-- not a string. A missing record has no revision. A revision of 16 characters is found without reading
-- the whole record, which may be large.
local function is(key, revision)
  local found = #revision == 16 and redis.pcall('GETRANGE', key, '12', '27') or redis.pcall('GET', key)
  if not found then
    return false
  elseif type(found) == 'string' then
    return #revision == 16 and found == revision or #revision == 40 and redis.sha1hex(found) == revision
  elseif not string.find(found.err, 'WRONGTYPE', 1, true) then
    redis.call('GETRANGE', key, '12', '27') -- fails in the same way, and ends the script
  end
  return revision == 'foreign'
end

-- changed says why a record does not have the expected revision: -3: another request has written it; -4:
-- another request has ended it, and there is a tombstone; -5: it is gone.
local function changed(key)
  local found = redis.pcall('GETRANGE', key, '28', '36')
  return found == '' and -5 or found == '","gone":' and -4 or -3
end
