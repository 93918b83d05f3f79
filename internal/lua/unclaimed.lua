-- The part of scripts on the sessions of a user that nobody has come back with: see unclaimed.go. The mark
-- has an entry for each, the oldest first: a space, ~, the session, >, and the session that it replaces, or
-- dots.

local nothing = '...........'

-- entries returns the unclaimed sessions of a mark, and what each replaces.
local function entries(mark)
  local order, replaced = {}, {}
  for id, old in string.gmatch(mark, ' ~([^ >]+)>([^ ,]+)') do
    order[#order + 1], replaced[id] = id, old
  end
  return order, replaced
end

-- withEntries returns a mark with these entries in place of its own. A session that was claimed has no entry
-- any more, so nothing replaces it.
local function withEntries(mark, order, replaced)
  local text = string.gsub(string.match(mark, '^[^,]*'), ' ~[^ >]+>[^ ]+', '')
  for _, id in ipairs(order) do
    local old = replaced[id]
    if old and not replaced[old] then -- rule: a session that was claimed is not replaced
      old = nothing
    end
    if old then
      text = text .. ' ~' .. id .. '>' .. old
    end
  end
  return text .. (string.match(mark, ',.*') or '')
end
