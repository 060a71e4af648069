-- One token bucket, shared by many processes. Amounts are whole micro-tokens and
-- times are the server's microseconds, both exact in a double. An absent key is a
-- full bucket, so expiry forgets nothing. With a bill, KEYS[2] is the last one that its
-- sender paid: number, debit, charge. When it comes again, because its answer was lost,
-- only what was added to it counts.
--
-- State: tokens last pause hold mult epoch version rate burst out cell cur prev full back spill
local n = {}
for i = 1, #ARGV do n[i] = tonumber(ARGV[i]) end
local want, need, least, share, reserve, debit, charge = n[1], n[2], n[3], n[4], n[5], n[6], n[7]
local rate, burst, version, life, gone = n[8], n[9], n[10], n[11], n[12]
local wait, cut, seen, late, touch, missing, filling, bill = n[13], n[14], n[15], n[16], n[17], n[18], n[19], n[20]
local ratetext = ARGV[8]
local returning = 1500000 -- microseconds in which all processes are back: see settleTime

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
if late > 0 and now > late then -- it sat in a queue: its sender has given it up
  return string.format('late %.0f', now)
end

local tokens, last, pause, hold, mult, epoch = burst * 1000000, now, 0, 0, 1000000, 0
local out, cell, cur, prev, full, back, spill = 0, now, 0, 0, now, 0, 0
local write = touch == 1
local held = redis.call('GET', KEYS[1])
local was = held and { string.match(held,
  '^(%-?%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%-?%d+) (%S+) (%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$') } or {}
local oldrate, oldburst = rate, burst
if was[16] and tonumber(was[8]) then
  tokens, last, pause = tonumber(was[1]), tonumber(was[2]), tonumber(was[3])
  hold, mult, epoch = tonumber(was[4]), tonumber(was[5]), tonumber(was[6])
  oldrate, oldburst = tonumber(was[8]), tonumber(was[9])
  out, cell, cur, prev = tonumber(was[10]), tonumber(was[11]), tonumber(was[12]), tonumber(was[13])
  full, back, spill = tonumber(was[14]), tonumber(was[15]), tonumber(was[16])
  local stored = tonumber(was[7])
  if stored > version then -- a newer configuration is in force
    version, rate, ratetext, burst = stored, oldrate, was[8], oldburst
  end
end

-- A clock that stepped back refills nothing; far back means another server's
-- clock, and waiting for it to catch up would freeze the key.
if last - now > 1000000 then
  local step = last - now
  last, write = now, true
  pause, hold, cell = math.max(0, pause - step), math.max(0, hold - step), math.max(0, cell - step)
  full, back = math.max(0, full - step), math.max(0, back - step)
end
if now < last then now = last end

-- The multiplier climbs 5 % of the full rate a second once hold is over.
local function climb(x) -- the integral of the multiplier, x microseconds from hold
  local m, top = mult / 1000000, (1000000 - mult) * 20
  if x <= 0 then return m * x end
  if x <= top then return m * x + x * x / 40000000 end
  return m * top + top * top / 40000000 + (x - top)
end
local function factor()
  return math.min(1000000, mult + math.floor(math.max(0, now - hold) / 20))
end

-- Slots handed out and not known to be spent count against the burst: a bucket
-- that filled up beside them would let both through at once. None outlives life,
-- so those of a process that died are forgotten after it.
if life > 0 then
  if now - cell >= 2 * life then
    cell, cur, prev = now, 0, 0
  elseif now - cell >= life then
    prev = cur
    cell, cur = cell + life, 0
  end
end
out = math.max(0, math.min(out, cur + prev))

-- No refill while paused: the pause must not end in a burst.
-- The time of a part of a micro-token is kept, or slow buckets asked often lose it.
local from, top = math.max(last, pause), (oldburst - out) * 1000000
local brim = tokens >= top
if now > from then
  local gain = (climb(now - hold) - climb(from - hold)) * oldrate
  local whole = math.floor(gain + 0.001)
  last = now
  brim = tokens + whole >= top
  if brim then
    spill = spill + math.max(0, tokens + whole - math.max(top, tokens))
  else
    last = now - math.floor(math.max(0, gain - whole) / (oldrate * factor() / 1000000))
  end
  tokens = math.max(tokens, math.min(tokens + whole, top))
else
  last = now
end
tokens = math.min(tokens, burst * 1000000)
out = math.max(0, out - gone)

-- Of what was spent elsewhere, what was refilled before the bucket was last full is lost.
-- Processes return from an outage one by one. What others spend on their shares until they
-- are back as well makes it run over: that is no loss, but pays for them.
if brim and now - back > returning then full = now end
local slip
if bill > 0 then
  local paid = { string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+) (%d+)$') }
  local number, oldDebit, oldCharge = tonumber(paid[1] or 0), tonumber(paid[2] or 0), tonumber(paid[3] or 0)
  if number < bill then
    slip = string.format('%.0f %.0f %.0f', bill, debit, math.max(0, charge))
  elseif number > bill then
    debit, charge = 0, math.min(0, charge)
  else
    slip = string.format('%.0f %.0f %.0f', bill, math.max(oldDebit, debit), math.max(oldCharge, charge))
    debit = math.max(0, debit - oldDebit)
    if charge > 0 then charge = math.max(0, charge - oldCharge) end
  end
  write = write or slip ~= nil
end
if debit > 0 then
  if now - back > returning then back, spill = now, 0 end
  debit = math.min(debit, missing + math.floor(filling * (now - full)))
  local paid = math.min(spill, math.max(0, debit - missing))
  debit, spill, write = debit - paid, spill - paid, true
end
if debit > 0 then -- spent elsewhere, while others may have drawn for two seconds
  local floor = -math.min(burst, math.floor(rate * 2)) * 1000000
  tokens = math.max(math.min(tokens, floor), tokens - debit)
end
if charge > 0 then
  tokens = tokens - charge
elseif charge < 0 then
  tokens = math.max(tokens, math.min((burst - out) * 1000000, tokens - charge))
end
write = write or charge ~= 0 or gone ~= 0

if wait > 0 then
  pause, write = math.max(pause, now + wait), true
end
if cut < 1000000 and now >= hold and (seen < 0 or seen == epoch) then
  mult = math.max(100000, math.floor(factor() * cut / 1000000))
  hold, epoch, write = now + math.max(1000000, wait), epoch + 1, true
end

local m = factor()
local paused = math.max(0, pause - now)
local speed = rate * m / 1000000
local free = math.floor((tokens + reserve - paused * speed) / 1000000)
local grant = math.min(want, free, math.max(need, share, math.floor(free / 2)))
if grant < math.max(1, least) then grant = 0 end
local before = tokens
tokens = tokens - grant * 1000000
if life > 0 then out, cur = out + grant, cur + grant end

if grant > 0 or write then
  local rest = (burst * 1000000 - tokens) / speed + paused
  if m < 1000000 then rest = math.max(rest, math.max(0, hold - now) + (1000000 - mult) * 20) end
  local life = string.format('%.0f', math.ceil(rest / 1000) + 1000)
  redis.call('SET', KEYS[1], string.format(
    '%.0f %.0f %.0f %.0f %.0f %.0f %.0f %s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f',
    tokens, last, pause, hold, mult, epoch, version, ratetext, burst, out, cell, cur, prev, full, back, spill), 'PX', life)
  if slip then redis.call('SET', KEYS[2], slip, 'PX', life) end
end
return string.format('ok %.0f %.0f %s %.0f %.0f %.0f %.0f %.0f %.0f',
  grant, before, ratetext, burst, m, paused, epoch, version, now)
