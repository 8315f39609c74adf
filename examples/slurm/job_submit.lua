-- Time limits, memory and priorities from predictions, when a job is submitted to Slurm.
--
-- `forerun slurm limits JOBS > predictions.csv` writes the file that this script reads. Copy the script to the folder of
-- slurm.conf and set JobSubmitPlugins=lua. A job is looked up by what follows "forerun:" in its comment, or else by its
-- name. What the user states wins: a limit or memory given with the job is kept. A job that is not found, or a file that
-- cannot be read, changes nothing: no job is ever turned away.
--
-- The columns (docs/slurm.md): job,seconds,time_limit_min,memory_mib,priority

local settings = {
  predictions = "/etc/slurm/predictions.csv",
  -- Asks the program for jobs that the file does not have and whose comment names a model:
  --   sbatch --comment "forerun:model=resnet50 batch=64 iterations=10000" ...
  -- e.g. "/usr/local/bin/forerun". The controller waits for it, a second or so; nil: only the file is asked.
  program = nil,
  -- How a priority is handed over: "priority" sets it (PriorityType=priority/basic), "site_factor" adds it as a factor
  -- (priority/multifactor, from -10000 to 10000), nil leaves it.
  priority = "priority",
  -- With "priority": what a job without prediction gets. Predictions give 1 to 32 million, more for shorter jobs.
  unpredicted = 1,
  -- Soft limits: the user's own limit is remembered, the scheduler plans with the predicted one, and
  -- `forerun slurm extend` raises it towards the user's while the job runs.
  soft = false,
  -- Host memory of a job that states none, as a multiple of the predicted memory of its GPU; 0: left to Slurm.
  host_memory = 0,
  -- The feature of nodes to ask for by predicted GPU memory, for jobs that state none: { {24576, "gpu24g"}, ... }
  memory_features = {},
}

-- NO_VAL as Slurm's plugin gives it for "not stated".
local NOT_STATED = slurm.NO_VAL
local NOT_STATED_64 = slurm.NO_VAL64

local function split(line)
  local cells = {}
  for cell in (line .. ","):gmatch("([^,]*),") do
    cells[#cells + 1] = cell
  end
  return cells
end

-- One row as a table by column, or nil.
local function row_of(heading, line)
  local cells = split(line)
  if #cells ~= #heading then return nil end
  local row = {}
  for i, name in ipairs(heading) do
    row[name] = cells[i]
  end
  return row
end

-- The row of a job. The file is read anew each time: it is small, and may have been replaced since.
local function find(key)
  local file = io.open(settings.predictions, "r")
  if not file then return nil end
  local heading = split((file:read("*l") or ""):gsub("\r$", ""))
  local found = nil
  for line in file:lines() do
    if line:sub(1, #key + 1) == key .. "," then
      found = row_of(heading, (line:gsub("\r$", "")))
      break
    end
  end
  file:close()
  return found
end

-- The program's answer for a description such as "model=resnet50 batch=64 iterations=10000".
local function ask(description)
  if not settings.program or not description:match("^[%w%s=._:+-]*model=[%w%s=._:+-]*$") then return nil end
  local pipe = io.popen(settings.program .. " slurm ask '" .. description .. "' 2>/dev/null", "r")
  if not pipe then return nil end
  local heading = split(pipe:read("*l") or "")
  local row = row_of(heading, pipe:read("*l") or "")
  pipe:close()
  return row
end

local function stated(value)
  return value ~= nil and value ~= NOT_STATED and value ~= NOT_STATED_64
end

local function apply(job, row)
  local limit = tonumber(row.time_limit_min)
  local note = string.format("forerun: predicted %s s, %s MiB of GPU memory", row.seconds, row.memory_mib)
  if limit and limit >= 1 then
    if not stated(job.time_limit) then
      job.time_limit = limit
    elseif settings.soft and limit < job.time_limit then
      note = string.format("%s, hard limit %d min", note, job.time_limit)
      job.time_limit = limit
    end
  end
  local memory = tonumber(row.memory_mib) or 0
  if memory > 0 then
    if settings.host_memory > 0 and not stated(job.pn_min_memory) then
      job.pn_min_memory = math.ceil(memory * settings.host_memory)
    end
    for _, entry in ipairs(settings.memory_features) do
      if memory <= entry[1] and (job.features == nil or job.features == "") then
        job.features = entry[2]
      end
    end
  end
  local priority = tonumber(row.priority)
  if priority and settings.priority == "priority" and not stated(job.priority) then
    job.priority = priority
  elseif priority and settings.priority == "site_factor" then
    -- 0 to 32 million becomes -10000 to 10000.
    job.site_factor = slurm.NICE_OFFSET and math.floor(priority / 1600) - 10000 + slurm.NICE_OFFSET or nil
  end
  job.admin_comment = note
end

function slurm_job_submit(job, partitions, uid)
  local ok, fault = pcall(function()
    local described = job.comment and job.comment:match("forerun:%s*(.-)%s*$")
    local key = described or job.name or ""
    local row = key ~= "" and find(key) or nil
    if not row and described then row = ask(described) end
    if row then
      apply(job, row)
    elseif settings.priority == "priority" and not stated(job.priority) then
      job.priority = settings.unpredicted
    end
  end)
  if not ok then slurm.log_error("forerun: %s", tostring(fault)) end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
