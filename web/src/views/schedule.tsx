// Jobs on a cluster under policies: how long they take, who waits, a Gantt chart and curves of completion.
import {useMemo, useState} from "preact/hooks";
import {clock, figure, kClockSteps, percent, plural, seconds, tick, times, whole} from "../format";
import {Bars} from "../ui/bars";
import {Lanes} from "../ui/lanes";
import {Facts, Notes, Section, Verdict} from "../ui/parts";
import {Plot, type Line} from "../ui/plot";
import {Table, type Column} from "../ui/table";
import {RecordTable} from "./generic";

export interface Outcome {
  schema: string;
  policy: string;
  predictor: string;
  gpus: string;
  jobs: number;
  runs: number;
  mean_jct: number;
  median_jct: number;
  p95_jct: number;
  p99_jct: number;
  mean_wait: number;
  p95_wait: number;
  makespan: number;
  with_deadline: number;
  late: number;
  mean_slowdown: number;
  worst_fairness: number;
  utilisation: number;
  fragmentation: number;
  preemptions: number;
  failures: number;
  unfinished: number;
  mean_jct_half_width: number;
  loss_against_perfect?: number;
  predictor_source?: string;
  not_measured: string[];
  rows_left_out: Record<string, number>;
  [by: string]: unknown;
}

export interface JobRow {
  policy: string;
  id: string;
  user: string;
  model: string;
  gpus: number;
  gpu_type: string;
  submit: number;
  start: number;
  end: number;
}

// The table that `--jobs-out` writes.
export function jobsOf(csv: string): JobRow[] {
  const [head, ...lines] = csv.trim().split(/\r?\n/);
  const names = (head ?? "").split(",");
  const cells = (line: string): string[] => line.includes('"')
    ? [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((match) => (match[1] ?? match[2] ?? "").replace(/""/g, '"')) : line.split(",");
  const at = (name: string) => names.indexOf(name);
  const [policy, id, user, model, gpus, type, submit, start, end] = ["policy", "id", "user", "model", "gpus", "gpu_type", "submit", "start", "end"].map(at);
  return lines.filter((line) => line !== "").map((line) => {
    const cell = cells(line);
    const text = (i: number | undefined) => cell[i ?? -1] ?? "";
    const number = (i: number | undefined) => text(i) === "" ? NaN : Number(text(i));
    return {policy: text(policy), id: text(id), user: text(user), model: text(model), gpus: number(gpus), gpu_type: text(type), submit: number(submit), start: number(start), end: number(end)};
  });
}

const kColours = ["k1", "k4", "k6", "k5", "k7", "k9", "k3", "k2", "k8"];

function Gantt({jobs, policy}: {jobs: JobRow[]; policy: string}) {
  const chart = useMemo(() => {
    const mine = jobs.filter((job) => job.policy === policy && Number.isFinite(job.start)).sort((a, b) => a.submit - b.submit || a.start - b.start);
    const n = mine.length;
    const lane = new Float64Array(2 * n), from = new Float64Array(2 * n), to = new Float64Array(2 * n), tone = new Uint8Array(2 * n);
    let begin = Infinity, end = -Infinity;
    mine.forEach((job, i) => {
      const last = Number.isFinite(job.end) ? job.end : job.start;
      lane[i] = i; from[i] = job.submit; to[i] = job.start; tone[i] = 0;
      lane[n + i] = i; from[n + i] = job.start; to[n + i] = last; tone[n + i] = 1;
      begin = Math.min(begin, job.submit);
      end = Math.max(end, last);
    });
    const text = (k: number) => {
      const job = mine[k % n];
      return job ? `${job.id}${job.model ? `, ${job.model}` : ""}${job.user ? `, ${job.user}` : ""}: ${plural(job.gpus, "GPU")} ${job.gpu_type}, waited ${seconds(job.start - job.submit)}, ran ${seconds(job.end - job.start)}` : "";
    };
    return {mine, names: mine.map((job) => job.id), begin, end, slices: {lane, from, to, tone, text}};
  }, [jobs, policy]);
  if (chart.mine.length === 0) return null;
  return (
    <Lanes title={`Jobs under ${policy}`} note={`${plural(chart.mine.length, "job")} in order of submission; a job that was stopped in between is drawn from its first start to its end.`}
      lanes={chart.names} slices={chart.slices} tones={[{name: "waits", colour: "faint"}, {name: "runs", colour: "accent"}]} begin={chart.begin} end={Math.max(chart.end, chart.begin + 1)} timeText={seconds} tickText={clock} steps={kClockSteps}
      csv={{header: ["job", "user", "model", "gpus", "gpu_type", "submit", "start", "end"], rows: () => chart.mine.map((job) => [job.id, job.user, job.model, job.gpus, job.gpu_type, job.submit, job.start, job.end])}} />
  );
}

const kPoints = 200;
const kPlaces = [1, 10, 60, 300, 900, 3600, 4 * 3600, 86400, 4 * 86400, 20 * 86400, 100 * 86400];

// Share of jobs that take at most so long, from submission to end.
function Completion({jobs, policies}: {jobs: JobRow[]; policies: string[]}) {
  const {x, lines} = useMemo(() => {
    const sorted = policies.map((policy) => jobs.filter((job) => job.policy === policy && Number.isFinite(job.end)).map((job) => job.end - job.submit).sort((a, b) => a - b));
    const all = sorted.flat().filter((value) => value > 0);
    const low = Math.max(1, all.reduce((a, b) => Math.min(a, b), Infinity)), high = all.reduce((a, b) => Math.max(a, b), 1);
    const places = Array.from({length: kPoints + 1}, (_, i) => low * (high / low) ** (i / kPoints));
    const curves: Line[] = sorted.map((times, k) => {
      let i = 0;
      return {name: policies[k] ?? "", colour: kColours[k % kColours.length] ?? "k8", values: places.map((place) => {
        while (i < times.length && (times[i] ?? 0) <= place * (1 + 1e-12)) ++i;
        return times.length ? i / times.length : null;
      })};
    });
    return {x: places, lines: curves};
  }, [jobs, policies]);
  return <Plot title="Completion times" note="Share of jobs that end within so long of their submission; time on a logarithmic axis" x={x} lines={lines} xLog xLabel="time from submission to end" yLabel="share of jobs"
    xText={(value) => `within ${seconds(value)}`} xTicks={clock} xTickPlaces={kPlaces.filter((place) => place >= (x[0] ?? 0) && place <= (x[x.length - 1] ?? 0))} yText={percent} yTicks={(value) => `${tick(value * 100)} %`} />;
}

const kColumns: Column<Outcome>[] = [
  {title: "policy", value: (row) => row.policy, left: true},
  {title: "mean completion", value: (row) => row.mean_jct, show: (row) => row.mean_jct_half_width > 0 ? `${seconds(row.mean_jct)} \u00b1 ${seconds(row.mean_jct_half_width)}` : seconds(row.mean_jct)},
  {title: "median", value: (row) => row.median_jct, show: (row) => seconds(row.median_jct)},
  {title: "95 %", value: (row) => row.p95_jct, show: (row) => seconds(row.p95_jct)},
  {title: "mean wait", value: (row) => row.mean_wait, show: (row) => seconds(row.mean_wait)},
  {title: "makespan", value: (row) => row.makespan, show: (row) => seconds(row.makespan)},
  {title: "GPUs in use", value: (row) => row.utilisation, show: (row) => percent(row.utilisation)},
  {title: "slowdown", value: (row) => row.mean_slowdown, show: (row) => times(row.mean_slowdown)},
  {title: "late", value: (row) => row.late, show: (row) => row.with_deadline ? `${figure(row.late)} of ${figure(row.with_deadline)}` : ""},
  {title: "preemptions", value: (row) => row.preemptions, show: (row) => figure(row.preemptions)},
  {title: "unfinished", value: (row) => row.unfinished, show: (row) => figure(row.unfinished)},
];

export function ScheduleView({answers, jobsCsv, leftOut}: {answers: Outcome[]; jobsCsv?: string; leftOut?: number}) {
  const best = answers[0] && answers.reduce((a, b) => b.mean_jct < a.mean_jct ? b : a);
  const jobs = useMemo(() => jobsCsv ? jobsOf(jobsCsv) : [], [jobsCsv]);
  const policies = useMemo(() => [...new Set(jobs.map((job) => job.policy))], [jobs]);
  const [chosen, setChosen] = useState<string | null>(null);
  if (!best) return <Verdict>No policy was simulated.</Verdict>;
  const worst = answers.reduce((a, b) => b.mean_jct > a.mean_jct ? b : a);
  const shown = chosen ?? policies[0] ?? "";
  const lost = Object.entries(best.rows_left_out).map(([why, count]) => `${plural(count, "row")} left out: ${why}`);
  return (
    <>
      <Verdict below={<>{plural(best.jobs, "job")} on {/^\d+$/.test(best.gpus) ? plural(Number(best.gpus), "GPU") : best.gpus}; durations known: {best.predictor}. The last job ends after {seconds(best.makespan)}; {percent(best.utilisation)} of GPU time is in use.</>}>
        {answers.length > 1 ? <><em>{best.policy}</em> has jobs done soonest: {seconds(best.mean_jct)} on average, {times(worst.mean_jct / best.mean_jct)} as fast as {worst.policy}.</>
          : <>Under <em>{best.policy}</em> a job takes {seconds(best.mean_jct)} on average, {seconds(best.mean_wait)} of it waiting.</>}
      </Verdict>
      {answers.length === 1 && <Facts facts={[
        {name: "Mean completion", value: seconds(best.mean_jct), more: best.mean_jct_half_width > 0 ? `\u00b1 ${seconds(best.mean_jct_half_width)}, ${plural(best.runs, "run")}` : undefined},
        {name: "Median", value: seconds(best.median_jct)}, {name: "95 % stay below", value: seconds(best.p95_jct)}, {name: "Mean wait", value: seconds(best.mean_wait)},
        {name: "GPUs in use", value: percent(best.utilisation)}, {name: "Free while jobs waited", value: percent(best.fragmentation)},
        best.with_deadline > 0 && {name: "Late", value: `${whole(best.late)} of ${whole(best.with_deadline)}`}, best.failures > 0 && {name: "Failures", value: whole(best.failures)},
      ]} />}
      <Section title="Policies">
        {answers.length > 1 && <Bars title="Mean completion time" unit="seconds" bars={answers.map((row) => ({
          name: row.policy, value: row.mean_jct, text: seconds(row.mean_jct), tone: row === best ? "accent" as const : "faint" as const,
          ...(row.mean_jct_half_width > 0 ? {low: row.mean_jct - row.mean_jct_half_width, high: row.mean_jct + row.mean_jct_half_width} : {}),
        }))} />}
        {jobs.length > 0 && <Completion jobs={jobs} policies={policies} />}
        <Table title="In figures" rows={answers} columns={kColumns} chosen={(row) => row === best} />
      </Section>
      {jobs.length > 0 && (
        <Section title="Jobs">
          {policies.length > 1 && <div class="tabs" role="group" aria-label="Policy">{policies.map((policy) => <button key={policy} type="button" aria-pressed={policy === shown} onClick={() => setChosen(policy)}>{policy}</button>)}</div>}
          <Gantt jobs={jobs} policy={shown} />
        </Section>
      )}
      {leftOut && <p class="note">{plural(leftOut, "row")} of jobs are too many for this page; `--jobs-out FILE` writes them.</p>}
      {answers.flatMap((row) => ["by_user", "by_group", "by_size"].flatMap((by) => Array.isArray(row[by]) ? [<RecordTable key={row.policy + by} title={`${row.policy}, ${by.replace("_", " ")}`} rows={row[by] as Record<string, unknown>[]} />] : []))}
      <Notes title="Assumptions" notes={[...best.not_measured, ...lost, ...(best.predictor_source ? [best.predictor_source] : [])]} />
    </>
  );
}
