-- Time limits, memory and priorities from predictions, when a job is submitted to Slurm.
--
-- `forerun slurm limits JOBS --out predictions.csv` writes the file that this script reads. Copy the script to the
-- folder of slurm.conf and set JobSubmitPlugins=lua. A job is looked up by what follows "forerun:" in its comment, or
-- else by its name. What the user states wins, no job is turned away, and no job gets less time than it would have had,
-- unless `soft` is set and the watcher that raises soft limits is at work. A job that is not found, an answer that
-- makes no sense and a fault of this script have the same outcome: the job is submitted as it is, with the priority of
-- unpredicted jobs.
--
-- The columns (docs/slurm.md): job,seconds,time_limit_min,memory_mib,priority,fits. Lua 5.1 to 5.4.

local settings = {
  predictions = "/etc/slurm/predictions.csv",
  -- Asks the program for jobs that the file does not have and whose comment names a model:
  --   sbatch --comment "forerun:model=resnet50 batch=64 iterations=10000" ...
  -- e.g. "/usr/local/bin/forerun"; nil: only the file is asked.
  program = nil,
  -- Where `forerun slurm serve` listens, which answers at once; nil: the program starts anew for each job.
  socket = nil,
  -- Whole seconds that the controller waits for an answer; sbatch gives up after MessageTimeout (10).
  patience = 2,
  -- How a priority is handed over: "priority" sets it (PriorityType=priority/basic), "site_factor" adds it as a factor
  -- (priority/multifactor, from 0 to 20000), nil leaves it.
  priority = "priority",
  -- With "priority": what a job without prediction gets. Predictions give 1 to 32 million, more for shorter jobs.
  unpredicted = 1,
  -- Soft limits: the scheduler plans with the predicted limit, the one that the job would have had is noted, and
  -- `forerun slurm extend --watch` raises the limit towards it while the job runs. Only while that is at work (`alive`).
  soft = false,
  -- The file that `forerun slurm extend --watch 30 --alive FILE` renews. Users must not be able to write it.
  alive = "/run/forerun-extend/alive",
  -- Host memory of a job that states none, as a multiple of the predicted memory of its GPU; 0: left to Slurm.
  host_memory = 0,
  -- The feature of nodes to ask for by predicted GPU memory, for jobs that state none: { {24576, "gpu24g"}, ... }
  memory_features = {},
}

local LARGEST_PRIORITY = 32000000
local LONGEST_MINUTES = 10 * 366 * 24 * 60
local LONGEST_DESCRIPTION = 1000
local ASK_KIBIBYTES = 4194304 -- address space of a program that is asked
local ANSWER_BYTES = 8192
local SCAN_BYTES = 65536      -- a stretch of the file that is searched line by line
local REMEMBERED_SECONDS = 600
local REMEMBERED_ANSWERS = 1000
local REST_SECONDS = 60 -- after an answer that did not come in time, for the user who asked

-- Slurm's "not stated" and "unlimited".
local function stated(value)
  return value ~= nil and value ~= slurm.NO_VAL and value ~= slurm.NO_VAL64
end

local function minutes_of(value)
  return value == slurm.INFINITE and math.huge or value
end

local function split(text, separator)
  local cells = {}
  for cell in (text .. separator):gmatch("([^" .. separator .. "]*)" .. separator) do
    cells[#cells + 1] = cell
  end
  return cells
end

-- A finite number from `least` to `most` in plain decimals, or nil: "nan", "inf", "0x10" and "1e30" are none.
local function number(text, least, most)
  if type(text) ~= "string" or not text:match("^%d+%.?%d*$") then return nil end
  local value = tonumber(text)
  if not value or value < least or value > most then return nil end
  return value
end

-- The row of a line, with numbers as numbers, or nil where one of them makes no sense. Columns are counted from the
-- end: a description that stands for the job may have commas in it.
local function row_of(heading, line)
  local cells = split(line, ",")
  if heading[1] ~= "job" or #cells < #heading then return nil end
  local text = {}
  for i = 2, #heading do
    text[heading[i]] = cells[#cells - #heading + i]
  end
  local row = {
    seconds = number(text.seconds, 0, LONGEST_MINUTES * 60),
    minutes = number(text.time_limit_min, 1, LONGEST_MINUTES),
    memory = number(text.memory_mib, 0, 1e9),
    priority = number(text.priority, 1, LARGEST_PRIORITY),
    fits = text.fits ~= "no",
  }
  if not (row.seconds and row.minutes and row.memory and row.priority) then return nil end
  row.minutes = math.ceil(row.minutes)
  row.priority = math.floor(row.priority)
  return row
end

-- The job that a line of the file is about: a name in quotes has commas.
local function job_of(line)
  local quoted = line:match('^"(.*)",')
  if quoted then return (quoted:gsub('""', '"')) end
  return line:match("^[^,]*")
end

-- Order by bytes; `<` of strings depends on the locale.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- The first line of `key` among those that start from `low` to `high`, read as one block; nil where there is none.
local function scan(file, key, low, high)
  file:seek("set", low)
  local block = file:read(high - low + 1) or ""
  if block ~= "" then block = block .. (file:read("*l") or "") end
  for line in block:gmatch("[^\n]+") do
    if job_of(line) == key then return line end
  end
  return nil
end

-- The line of `key` in a file sorted by job, as `forerun slurm limits` writes it, by bisection. A file that is no
-- longer than one stretch need not be sorted.
local function bisect(file, key, low, high)
  local least, most, found = nil, nil, nil
  while high - low > SCAN_BYTES do
    local middle = math.floor((low + high) / 2)
    file:seek("set", middle)
    file:read("*l")
    local start = file:seek()
    local line = file:read("*l")
    if not line or start > high then
      high = middle
    else
      local job = job_of(line)
      if (least and before(job, least)) or (most and before(most, job)) then
        error(settings.predictions .. " is not sorted by job; write it with `forerun slurm limits --out`")
      end
      if before(job, key) then
        low, least = file:seek(), job
      else
        if job == key then found = line end
        high, most = middle, job
      end
    end
  end
  return scan(file, key, low, high) or found
end

-- The row of a job in the file, which is opened anew each time: it may have been replaced.
local function find(key)
  local file = io.open(settings.predictions, "r")
  if not file then return nil end
  local heading = split(((file:read("*l") or ""):gsub("\r$", "")), ",")
  local first = file:seek()
  local ok, line = pcall(bisect, file, key, first, file:seek("end"))
  file:close()
  if not ok then error(line, 0) end
  if not line then return nil end
  local row = row_of(heading, (line:gsub("\r$", "")))
  if not row then error("the row of '" .. key .. "' in " .. settings.predictions .. " makes no sense") end
  return row
end

local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- Runs the program; its row, or nil and the reason, and whether it took too long. The description is one word for the
-- shell, of characters that mean nothing to it besides.
local function run_program(description)
  local socket = settings.socket and " --socket " .. quoted(settings.socket) or ""
  local pipe = io.popen(string.format(
    "ulimit -v %d; timeout -k 1 %d %s slurm ask%s -- %s </dev/null 2>&1; status=$?; echo; echo $status",
    ASK_KIBIBYTES, settings.patience, quoted(settings.program), socket, quoted(description)), "r")
  if not pipe then return nil, "no answer" end
  local text = pipe:read(ANSWER_BYTES) or ""
  pipe:close()
  local status = text:match("(%d+)%s*$")
  local first, second = text:match("^([^\n]*)\n([^\n]*)")
  local row = status == "0" and row_of(split(first or "", ","), second or "") or nil
  if row then return row end
  -- What is known about a file is not told to users who name it.
  local late = status == "124" or status == "137"
  if late or not first or first == "" or description:find("/", 1, true) then return nil, "no answer", late end
  return nil, (first:gsub("^forerun: ", ""):gsub("[^%w%p ]", "?"):sub(1, 200))
end

-- Slurm keeps this script loaded: what was answered, by description, and users who have to rest.
local answers, answer_count, resting = {}, 0, {}

-- The program's answer for a description such as "model=resnet50 batch=64 iterations=10000", or nil and the reason.
-- Submissions wait for each other: an answer is remembered, and who asks what takes too long is not asked for a while.
local function ask(description, uid)
  if not settings.program or not (" " .. description):find(" model=", 1, true) then return nil end
  if #description > LONGEST_DESCRIPTION or not description:match("^[%w =._:+;,/@-]*$") then
    return nil, "the description has characters other than letters, digits, spaces and = . _ : + - ; , / @"
  end
  local now = os.time()
  local known = answers[description]
  if known and known.time <= now and now < known.time + REMEMBERED_SECONDS then return known.row, known.reason end
  if resting[uid] and now < resting[uid] then return nil, "an earlier answer took too long" end
  local row, reason, late = run_program(description)
  if late then
    resting[uid] = now + REST_SECONDS
    return nil, reason
  end
  if answer_count >= REMEMBERED_ANSWERS then answers, answer_count = {}, 0 end
  if row then answers[description], answer_count = { time = now, row = row }, answer_count + 1 end
  return row, reason
end

-- The limit that the job would have without prediction, and the longest that its partitions allow; nil where Slurm is
-- to judge it as it is.
local function limits_without(job, partitions)
  local names = job.partition and split(job.partition, ",") or {}
  if #names == 0 then
    for name, partition in pairs(partitions) do
      if partition.flag_default == 1 then names[1] = name end
    end
  end
  if #names == 0 then return nil end
  local default, longest = math.huge, math.huge
  for _, name in ipairs(names) do
    local partition = partitions[name]
    if not partition then return nil end
    local most = stated(partition.max_time) and minutes_of(partition.max_time) or math.huge
    longest = math.min(longest, most)
    default = math.min(default, stated(partition.default_time) and minutes_of(partition.default_time) or most)
  end
  if not stated(job.time_limit) then return default, longest end
  local own = minutes_of(job.time_limit)
  if own > longest then return nil end
  return own, longest
end

-- The shortest limit in minutes that the watcher can look after; nil where it is not at work. Its file:
-- "forerun-extend 1 SECONDS-SINCE-1970 AT-WORK-UNTIL SHORTEST-LIMIT".
local function watched()
  local file = io.open(settings.alive, "r")
  if not file then return nil end
  local line = file:read("*l") or ""
  file:close()
  local written, up_to, least = line:match("^forerun%-extend 1 (%d+) (%d+) (%d+)$")
  written, up_to, least = tonumber(written), tonumber(up_to), tonumber(least)
  local now = os.time()
  if not least or written > now + 60 or up_to < now or up_to - written > 86400 then return nil end
  return least
end

-- The limit to set, or nil, and what the job would have had where that is more.
local function limit_for(job, row, partitions)
  local own, longest = limits_without(job, partitions)
  if not own then return nil end
  if row.minutes >= own then
    if stated(job.time_limit) then return nil end
    return math.min(row.minutes, longest)
  end
  if not settings.soft or stated(job.time_min) then return nil end
  local least = watched()
  if not least then return nil end
  local soft = math.max(row.minutes, least)
  if soft >= own then return nil end
  return soft, own
end

local function unpredicted()
  if settings.priority == "priority" then return { priority = settings.unpredicted } end
  if settings.priority == "site_factor" then return { site_factor = 0 } end
  return {}
end

-- What to set of a job that has a row.
local function predicted(job, row, partitions)
  if not row.fits then
    local fields = unpredicted()
    fields.admin_comment = string.format("forerun: predicted not to fit in GPU memory, %.0f MiB", row.memory)
    return fields
  end
  local fields = {}
  local limit, hard = limit_for(job, row, partitions)
  fields.time_limit = limit
  local note = string.format("forerun: predicted %.1f s, %.0f MiB of GPU memory", row.seconds, row.memory)
  if hard == math.huge then
    note = note .. ", hard limit unlimited"
  elseif hard then
    note = string.format("%s, hard limit %d min", note, hard)
  end
  fields.admin_comment = note
  if row.memory > 0 then
    if settings.host_memory > 0 and not stated(job.pn_min_memory) then
      fields.pn_min_memory = math.ceil(row.memory * settings.host_memory)
    end
    for _, entry in ipairs(settings.memory_features) do
      if row.memory <= entry[1] and (job.features == nil or job.features == "") then
        fields.features = fields.features or entry[2]
      end
    end
  end
  if settings.priority == "priority" then fields.priority = row.priority end
  if settings.priority == "site_factor" then fields.site_factor = math.floor(row.priority / 1600) end
  return fields
end

local function decide(job, partitions, uid)
  local described = job.comment and job.comment:match("forerun:%s*(.-)%s*$")
  local key = described or job.name or ""
  local row = key ~= "" and find(key) or nil
  local reason = nil
  if not row and described then row, reason = ask(described, uid) end
  if reason then slurm.log_user("forerun: not predicted: %s", reason) end
  if row and not row.fits then
    slurm.log_user("forerun: predicted not to fit in the memory of its GPU; its priority is that of unpredicted jobs")
  end
  return row and predicted(job, row, partitions) or unpredicted()
end

function slurm_job_submit(job, partitions, uid)
  local ok, fields = pcall(decide, job, partitions, uid)
  if not ok then
    slurm.log_error("forerun: %s", tostring(fields))
    fields = unpredicted()
  end
  -- Hard limits are noted in the admin comment, by this script alone.
  if not fields.admin_comment and job.admin_comment and job.admin_comment:match("^%s*forerun") then
    fields.admin_comment = ""
  end
  -- A held job (priority 0) stays so.
  if stated(job.priority) then fields.priority = nil end
  for name, value in pairs(fields) do
    job[name] = value
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
