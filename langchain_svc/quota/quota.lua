-- `ledger.py` in Redis: one script, so that asking is atomic and takes one round trip. The clock is
-- that of Redis. KEYS: the state, the queue (by turn), when each waiting call is given up, the
-- tokens of each, the processes (by their last request), and of each class the last turn of each
-- party. ARGV, in JSON: the plan's limits and the request (see redis_accounts.py).
local BUCKETS, LATENESS, SLACK, ROUNDING, UNTOLD = 120, 0.75, 1.0, 2.0, 5.0
local MINUTE, HOUR, DAY, KEPT = 60, 3600, 86400, 0.02
local BELIEF, BELIEF_OF_A_DAY = 600, HOUR -- seconds that one answer counts for at most
local GONE = 3.0 -- seconds after which a call that does not come back is taken for dead
local RECOVERY = 5.0 -- seconds in which all that call often have asked again after a failure
local state_key, queue_key, seen_key, tokens_key, processes_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local began_key = KEYS[8] -- when this Redis first kept an account
local limits, request = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local packed = redis.call('GET', state_key)
local state = packed and cmsgpack.unpack(packed)
if not state then
  state = {born = time[1] .. '.' .. time[2], now = now, windows = {}, turns = {0, 0}, hold = 0, bulk_at = 0,
           queued = 0, recovers_until = 0, paced_at = 0, expected = 0, reported = 0}
  -- A Redis that is new itself may have lost this account: others may know what was used.
  redis.call('SET', began_key, now, 'NX')
  if now - tonumber(redis.call('GET', began_key)) < RECOVERY then state.recovers_until = now + RECOVERY end
end
-- A clock that was set back a little stands still; one that was set back far moves everything.
local back = state.now - now
if back > MINUTE then
  for _, w in pairs(state.windows) do
    for _, held in ipairs(w[5]) do held[1] = held[1] - math.ceil(back * BUCKETS / w[2]) end
    w[6] = w[6] - back
  end
  state.hold, state.bulk_at = state.hold - back, state.bulk_at - back
  state.recovers_until, state.paced_at = state.recovers_until - back, state.paced_at - back
  redis.call('DEL', processes_key)
  for _, id in ipairs(redis.call('ZRANGE', seen_key, 0, -1)) do
    redis.call('ZADD', seen_key, now + GONE, id)
  end
else
  now = math.max(now, state.now)
end
state.now = now

-- windows: state.windows[name] = {unit, seconds, learned limit or false, used, {{bucket, amount}, ...},
--                                  when the learned limit lapses}
local UNIT, SECONDS, LIMIT, USED, HELD, LAPSES = 1, 2, 3, 4, 5, 6
local planned = {}
local function window_of(unit, seconds)
  local name = unit .. seconds
  state.windows[name] = state.windows[name] or {unit, seconds, false, 0, {}, 0}
  return state.windows[name]
end
for _, limit in ipairs(limits) do -- {unit, amount, seconds}
  window_of(limit[1], limit[3])
  planned[limit[1] .. limit[3]] = limit[2]
end
if #limits == 0 then window_of('requests', MINUTE) end -- the headers teach it

local function width(w) return w[SECONDS] / BUCKETS end
local function at(w, moment) return math.floor(moment / width(w)) end
local function leaves(w, bucket) return (bucket + 1) * width(w) + w[SECONDS] + LATENESS end
local function limit_of(w)
  local mine = planned[w[UNIT] .. w[SECONDS]] or math.huge
  return math.min(mine, w[LIMIT] or math.huge)
end
local function add(w, bucket, amount)
  local held = w[HELD]
  local i = #held
  while i > 0 and held[i][1] > bucket do i = i - 1 end
  if i > 0 and held[i][1] == bucket then
    amount = math.max(amount, -held[i][2])
    held[i][2] = held[i][2] + amount
  elseif amount > 0 then
    table.insert(held, i + 1, {bucket, amount})
  else
    return
  end
  w[USED] = w[USED] + amount
end
local function wait_for(w, amount)
  local limit = limit_of(w)
  local over = w[USED] + amount - limit
  if over <= 0 then return 0 end
  local full = math.ceil(over / limit) - 1
  over = over - full * limit
  for _, held in ipairs(w[HELD]) do
    over = over - held[2]
    if over <= 0 then return leaves(w, held[1]) - now + full * w[SECONDS] end
  end
  return (full + 1) * w[SECONDS]
end
local function pace()
  local shortest
  for _, w in pairs(state.windows) do
    if w[UNIT] == 'requests' and (not shortest or w[SECONDS] < shortest[SECONDS]) then
      shortest = w
    end
  end
  if not shortest then return 0 end
  return (shortest[SECONDS] + LATENESS + width(shortest)) / limit_of(shortest)
end
-- The part of its shortest window of requests, and of each of tokens, that a call takes.
local function share_of_time(tokens)
  local longest = pace()
  for _, w in pairs(state.windows) do
    if w[UNIT] == 'tokens' then
      longest = math.max(longest, math.min(1, tokens / limit_of(w)) * w[SECONDS])
    end
  end
  return longest
end
local function recovers()
  local complete = state.expected > 0 and state.reported >= state.expected
  return now < state.recovers_until and not complete
end

for _, w in pairs(state.windows) do
  if w[LIMIT] and now >= w[LAPSES] then w[LIMIT] = false end
  local held = w[HELD]
  while held[1] and leaves(w, held[1][1]) <= now do
    w[USED] = w[USED] - held[1][2]
    table.remove(held, 1)
  end
end

local function drop(id)
  if redis.call('ZREM', queue_key, id) == 1 then
    state.queued = math.max(0, state.queued - tonumber(redis.call('HGET', tokens_key, id) or 0))
    redis.call('HDEL', tokens_key, id)
    redis.call('ZREM', seen_key, id)
  end
end
local waiting = redis.call('ZCARD', queue_key)
if waiting > 0 then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', seen_key, '-inf', now, 'LIMIT', 0, 200)) do
    drop(id)
  end
  for _, id in ipairs(request.leave or {}) do drop(id) end
  waiting = redis.call('ZCARD', queue_key)
end

-- ends of calls
local function belief(period) return period > HOUR + 1 and BELIEF_OF_A_DAY or BELIEF end
local function observe(limit, remaining, reset)
  local period
  for _, p in ipairs({MINUTE, HOUR, DAY}) do
    if not period and reset <= p + 1 then period = p end
  end
  if limit < 1 or not period then return end
  local window
  for _, w in pairs(state.windows) do
    if w[UNIT] == 'requests' and limit_of(w) == limit and reset <= w[SECONDS] + 1 then window = w end
  end
  if not window then
    local plans = false
    for _, limit_planned in ipairs(limits) do plans = plans or limit_planned[1] == 'requests' end
    if plans and not planned['requests' .. period] then return end
    window = window_of('requests', period)
    if limit_of(window) < limit then return end
    window[LIMIT] = limit
  end
  if window[LIMIT] then window[LAPSES] = now + belief(window[SECONDS]) end
  local began = now + reset - window[SECONDS]
  local forgotten = now + belief(window[SECONDS])
  local bucket = math.min(at(window, began), at(window, now), at(window, forgotten - window[SECONDS]))
  local ours, first = 0, math.min(bucket, at(window, began - ROUNDING))
  for _, held in ipairs(window[HELD]) do
    if held[1] >= first then ours = ours + held[2] end
  end
  if limit - remaining > ours then add(window, bucket, limit - remaining - ours) end
end
for _, ended in ipairs(request.settle or {}) do
  local began, reserved, outcome = unpack(ended)
  local sent, tokens, status, retry_after, header_limits = unpack(outcome)
  local refused = status == 429
  for _, w in pairs(state.windows) do
    if w[UNIT] == 'requests' then
      if refused or not sent then add(w, at(w, began), -1) end
    elseif tokens ~= cjson.null then
      add(w, at(w, began), -reserved)
      add(w, at(w, now), tokens)
    end
  end
  if header_limits ~= cjson.null then observe(unpack(header_limits)) end
  if refused then
    local wait = retry_after == cjson.null and UNTOLD or retry_after
    state.hold = math.max(state.hold, now + math.min(wait, belief(wait)))
  end
end

-- What processes had counted before Redis lost it. Until all of them have reported it, an account knows
-- too little to let a burst through: it goes at the plan's pace. It waits for them no longer than
-- RECOVERY, since some may be dead.
local lost = request.born ~= '' and request.born ~= state.born
if lost and state.expected == 0 then state.recovers_until = now + RECOVERY end
if lost then state.expected = math.max(state.expected, request.processes) end
if request.recovered and not lost then state.reported = state.reported + 1 end
if request.counted and not lost then
  for _, part in ipairs(request.counted) do
    local w = window_of(part[1], part[2])
    add(w, math.min(at(w, part[3]), at(w, now)), part[4])
  end
end
redis.call('ZADD', processes_key, now, request.process)
redis.call('ZREMRANGEBYSCORE', processes_key, '-inf', now - 120)
local used = {}
for _, limit in ipairs(limits) do table.insert(used, window_of(limit[1], limit[3])[USED]) end

local reply = {now = now, born = state.born, processes = redis.call('ZCARD', processes_key), used = used,
               turn = 0, wait = lost and {0.005, 0.005, MINUTE}}
if request.call and not lost then
  local call = {}
  call.id, call.priority, call.party, call.tokens, call.turn, call.patience = unpack(request.call)
  local class = call.priority + 1
  local turns_key = KEYS[5 + class]
  if call.turn == 0 then
    call.turn = math.max(state.turns[class], tonumber(redis.call('ZSCORE', turns_key, call.party) or 0)) + 1
  end
  local score = call.priority * 2 ^ 40 + call.turn
  local rank, bulk_ahead = 0, 0
  local queued = false
  if waiting > 0 then
    local at_rank = redis.call('ZRANK', queue_key, call.id)
    queued = at_rank and true or false
    rank = at_rank or redis.call('ZCOUNT', queue_key, '-inf', score)
    if call.priority == 1 then
      bulk_ahead = rank - redis.call('ZCOUNT', queue_key, '-inf', 2 ^ 40)
    end
  end
  local longest, seconds = state.hold - now, MINUTE
  for _, w in pairs(state.windows) do
    local amount
    if w[UNIT] == 'requests' then
      amount = rank + 1
      if call.priority == 1 and w[SECONDS] > MINUTE then
        amount = amount + math.min(KEPT * limit_of(w), limit_of(w) - 1)
      end
    else
      amount = math.min(call.tokens, limit_of(w))
      if rank > 0 then amount = amount + state.queued * rank / waiting end
    end
    local wait = limit_of(w) == math.huge and 0 or wait_for(w, amount)
    if w[LIMIT] then wait = math.min(wait, w[LAPSES] - now) end
    if wait > longest then longest, seconds = wait, w[SECONDS] end
  end
  if call.priority == 1 then
    longest = math.max(longest, state.bulk_at - now + bulk_ahead * pace())
  end
  if recovers() then
    local turn = state.paced_at - now + rank * pace()
    longest = math.max(longest, math.min(turn, state.recovers_until - now))
  end
  if longest > 0 then
    local again = math.max(0.005, math.min(longest, 0.2 + 0.05 * rank)) + 0.002 * math.min(rank, 100)
    if longest <= call.patience then
      if not queued then
        redis.call('ZADD', queue_key, score, call.id)
        redis.call('ZADD', turns_key, call.turn, call.party)
        redis.call('HSET', tokens_key, call.id, call.tokens)
        state.queued = state.queued + call.tokens
      end
      redis.call('ZADD', seen_key, now + again + GONE, call.id)
    else
      drop(call.id)
    end
    reply.wait = {longest, again, seconds}
  else
    if queued then drop(call.id) end
    state.turns[class] = math.max(state.turns[class], call.turn)
    if waiting > 0 then redis.call('ZREMRANGEBYSCORE', turns_key, '-inf', state.turns[class]) end
    for _, w in pairs(state.windows) do
      add(w, at(w, now), w[UNIT] == 'requests' and 1 or call.tokens)
    end
    if recovers() then state.paced_at = math.max(state.paced_at, now) + share_of_time(call.tokens) end
    if state.bulk_at > 0 or call.priority == 1 then
      state.bulk_at = math.max(state.bulk_at, now - SLACK) + pace()
    end
  end
  reply.turn = call.turn
end
if request.look then -- `Ledger` does the rest
  local interactive = redis.call('ZCOUNT', queue_key, '-inf', 2 ^ 40)
  local windows = {}
  for _, w in pairs(state.windows) do
    local limit = limit_of(w)
    table.insert(windows, {w[UNIT], limit == math.huge and -1 or limit, w[SECONDS], w[HELD]})
  end
  reply.state = {windows = windows, hold = state.hold, bulk_at = state.bulk_at, interactive = interactive,
                 bulk = waiting - interactive, queued = state.queued}
end

local longest_window = 0
for _, w in pairs(state.windows) do longest_window = math.max(longest_window, w[SECONDS]) end
local ttl = math.ceil(2 * longest_window + HOUR)
redis.call('SET', state_key, cmsgpack.pack(state), 'EX', ttl)
redis.call('EXPIRE', processes_key, ttl)
if waiting > 0 or reply.wait then
  for at = 2, 7 do redis.call('EXPIRE', KEYS[at], ttl) end
end
return cjson.encode(reply)
