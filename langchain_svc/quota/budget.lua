-- A budget that processes share: one script, so that asking is atomic and takes one round trip. The
-- clock is that of Redis. KEYS: the state, the reservations (by id), what each process used (by its
-- name), when each process sent its last request, and when this Redis first kept an account. ARGV, in
-- JSON: the name of the period, and the request (see redis_accounts.py).
--
-- A process reports with each request all that it used in the period, and not what it used since the
-- last one. So a request that is repeated counts once, and the requests that come fill a Redis again
-- that has started empty.
local RECOVERY = 5.0 -- seconds in which a process that is new waits for those that may know more
local SILENT = 86400 -- seconds after which the sum alone keeps what a process used
local HOUR, DAY, KEPT = 3600, 86400, {hour = 7200, day = 172800, month = 63 * 86400}
local state_key, holds_key, processes_key, times_key, began_key = unpack(KEYS)
local name, request = cjson.decode(ARGV[1])[1], cjson.decode(ARGV[2])

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6

local function month(moment) -- Howard Hinnant's civil_from_days, http://howardhinnant.github.io/date_algorithms.html
  local days = math.floor(moment / DAY) + 719468
  local era = math.floor(days / 146097)
  local day_of_era = days - era * 146097
  local year_of_era = math.floor((day_of_era - math.floor(day_of_era / 1460) + math.floor(day_of_era / 36524)
    - math.floor(day_of_era / 146096)) / 365)
  local day_of_year = day_of_era
    - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
  local march_month = math.floor((5 * day_of_year + 2) / 153)
  local number = march_month < 10 and march_month + 3 or march_month - 9
  local year = year_of_era + era * 400 + (number <= 2 and 1 or 0)
  return year * 12 + number
end
local period = 0
if name == 'hour' then period = math.floor(now / HOUR) end
if name == 'day' then period = math.floor(now / DAY) end
if name == 'month' then period = month(now) end

local packed = redis.call('GET', state_key)
local state = packed and cmsgpack.unpack(packed)
if not state then
  state = {born = time[1] .. '.' .. time[2], period = period, used = {0, 0, 0}, reserved = {0, 0, 0},
           known = {0, 0, 0}, told = {0, 0, 0}, recovers_until = 0}
  -- A Redis that is new itself may have lost this account.
  redis.call('SET', began_key, now, 'NX')
  if now - tonumber(redis.call('GET', began_key)) < RECOVERY then state.recovers_until = now + RECOVERY end
end
if period > state.period then -- a clock that is set back begins nothing anew
  state.period, state.recovers_until = period, 0
  state.used, state.reserved, state.known, state.told = {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}
  redis.call('DEL', holds_key, processes_key, times_key)
end

local function change(sums, amounts, sign)
  for i = 1, 3 do sums[i] = sums[i] + sign * amounts[i] end
end
local function release(id)
  local amounts = redis.call('HGET', holds_key, id)
  if amounts then
    change(state.reserved, cmsgpack.unpack(amounts), -1)
    redis.call('HDEL', holds_key, id)
  end
end
local function reserve(id, amounts)
  if redis.call('HSETNX', holds_key, id, cmsgpack.pack(amounts)) == 1 then
    change(state.reserved, amounts, 1)
  end
end

-- What the process has used. `known` is the largest sum that a process had from Redis before the account
-- was lost, `told` the part of it that its owners have reported again. The rest was used by processes
-- that have not come back, and perhaps never will.
local lost = request.born ~= '' and request.born ~= state.born
local is_of_now = request.period == state.period
if not lost then
  local before = redis.call('HGET', processes_key, request.process)
  before = before and cmsgpack.unpack(before)
  if request.recovery and is_of_now then
    if not before then
      for i = 1, 3 do state.known[i] = math.max(state.known[i], request.recovery.sum[i]) end
      change(state.told, request.recovery.told, 1)
      before = {0, 0, 0}
    end
    for id, amounts in pairs(request.recovery.reserved) do reserve(id, amounts) end
    state.recovers_until = 0
  end
  if is_of_now then
    change(state.used, before or request.told, -1)
    change(state.used, request.used, 1)
    redis.call('HSET', processes_key, request.process, cmsgpack.pack(request.used))
    redis.call('ZADD', times_key, now, request.process)
    for _, process in ipairs(redis.call('ZRANGEBYSCORE', times_key, '-inf', now - SILENT, 'LIMIT', 0, 20)) do
      redis.call('HDEL', processes_key, process)
      redis.call('ZREM', times_key, process)
    end
  end
  for _, id in ipairs(request.release) do release(id) end
end

local sum = {}
for i = 1, 3 do sum[i] = state.used[i] + math.max(0, state.known[i] - state.told[i]) end
local reply = {born = state.born, period = state.period, lost = lost, granted = false, wait = 0}
if request.call and not lost then
  local fits = true
  for i = 1, 3 do
    local bound = request.call.bounds[i]
    local free = bound ~= cjson.null and math.max(0, bound - sum[i] - state.reserved[i])
    if free and request.call.most[i] > free then fits = false end
  end
  if now < state.recovers_until then
    reply.wait = state.recovers_until - now
  elseif fits then
    reply.granted = true
  end
end
-- As texts, since JSON here has 14 digits. The call that asks is not in it.
reply.calls = redis.call('HLEN', holds_key)
if reply.calls == 0 then state.reserved = {0, 0, 0} end -- no error of rounding is left over
reply.used, reply.reserved = {}, {}
for i = 1, 3 do
  reply.used[i] = string.format('%.17g', sum[i])
  reply.reserved[i] = string.format('%.17g', state.reserved[i])
end
if reply.granted then reserve(request.call.id, request.call.most) end

redis.call('SET', state_key, cmsgpack.pack(state))
if name ~= cjson.null then
  for at = 1, 4 do redis.call('EXPIRE', KEYS[at], KEPT[name]) end
end
return cjson.encode(reply)
