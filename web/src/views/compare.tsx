// One workload on many GPUs: time, memory, cost, and which of them no other beats in both.
import {useMemo} from "preact/hooks";
import type {FitVerdict, Job} from "../answers";
import {bytes, figure, hours, ms, msRange, percent, plural, whole, withRange, tick} from "../format";
import {Bars, type Bar} from "../ui/bars";
import {Notes, Section, Verdict} from "../ui/parts";
import {Plot} from "../ui/plot";
import {Table, type Column} from "../ui/table";
import {verdictText, verdictTone} from "./predict";

export interface GpuRow {
  gpu: string;
  error?: string;
  iter_ms: number;
  iter_low_ms: number;
  iter_high_ms: number;
  bound: string;
  samples_per_second: number;
  tokens_per_second?: number;
  relative_speed: number;
  peak_reserved: number;
  device_memory: number;
  verdict: FitVerdict;
  largest_batch?: number;
  measured: string;
  pareto: boolean;
  price_per_hour?: number;
  cost_per_million_samples?: number;
  run_hours?: number;
  run_cost?: number;
  job?: Job;
  in_time?: boolean;
  in_budget?: boolean;
}

export interface Compared {
  schema: string;
  model: string;
  batch?: number;
  precision?: string;
  optimizer?: string;
  iterations?: number;
  currency?: string;
  gpus: GpuRow[];
}

export const shortGpu = (name: string): string => name.replace(/^NVIDIA (GeForce )?/, "").replace(/^Tesla /, "").replace(/^AMD Instinct /, "");

function CompareVerdict({all}: {all: Compared}) {
  const fitting = all.gpus.filter((row) => row.verdict === "fits");
  const fastest = fitting[0] && fitting.reduce((a, b) => b.iter_ms < a.iter_ms ? b : a);
  const what = `${all.model}${all.batch ? `, batch ${whole(all.batch)}, ${all.precision}` : ""}`;
  if (!fastest) return <Verdict tone="bad" below={what}>No GPU surely holds {all.model}.</Verdict>;
  const equals = fitting.filter((row) => row.gpu !== fastest.gpu && row.iter_ms < fastest.iter_ms * 1.01).length;
  const cost = (row: GpuRow) => row.run_cost ?? row.cost_per_million_samples ?? Infinity;
  const cheapest = fitting.reduce((a, b) => cost(b) < cost(a) ? b : a);
  const money = cost(cheapest) < Infinity
    ? ` ${shortGpu(cheapest.gpu)} is the cheapest by your prices: ${figure(cost(cheapest))} ${all.currency ?? ""}${cheapest.run_cost !== undefined ? " for the whole run" : " a million samples"}.` : "";
  return (
    <Verdict tone="good" below={<>{what}. {plural(fitting.length, "GPU")} of {all.gpus.length} surely hold it.{money}</>}>
      <em>{shortGpu(fastest.gpu)}</em> is the fastest that holds {all.model}{equals > 0 && `, with ${plural(equals, "other")} within 1 %`}: {withRange(fastest.iter_ms, fastest.iter_low_ms, fastest.iter_high_ms)}.
    </Verdict>
  );
}

function columnsOf(all: Compared, explain?: (gpu: string) => void): Column<GpuRow>[] {
  const any = (field: keyof GpuRow) => all.gpus.some((row) => row[field] !== undefined);
  const optional = (title: string, field: "price_per_hour" | "cost_per_million_samples" | "run_hours" | "run_cost", text: (value: number) => string): Column<GpuRow>[] =>
    any(field) ? [{title, value: (row) => row[field], show: (row) => row[field] === undefined ? "" : text(row[field])}] : [];
  return [
    {title: "GPU", value: (row) => row.gpu, left: true, show: explain ? (row) => <button type="button" class="link" onClick={() => explain(row.gpu)}>{shortGpu(row.gpu)}</button> : (row) => shortGpu(row.gpu)},
    {title: "verdict", value: (row) => row.verdict, left: true, show: (row) => <span class={`tag ${verdictTone(row.verdict)}`}>{verdictText[row.verdict]}</span>},
    {title: "iteration", value: (row) => row.iter_ms, show: (row) => ms(row.iter_ms)},
    {title: "range", value: (row) => row.iter_high_ms, show: (row) => msRange(row.iter_low_ms, row.iter_high_ms)},
    any("tokens_per_second") ? {title: "tokens/s", value: (row) => row.tokens_per_second, show: (row) => figure(row.tokens_per_second ?? 0)}
      : {title: "samples/s", value: (row) => row.samples_per_second, show: (row) => figure(row.samples_per_second)},
    {title: "speed", value: (row) => row.relative_speed, show: (row) => row.relative_speed ? percent(row.relative_speed) : ""},
    ...optional("whole run", "run_hours", hours), ...optional("price/h", "price_per_hour", figure), ...(any("run_cost") ? [] : optional("cost/M samples", "cost_per_million_samples", figure)),
    ...optional("run's cost", "run_cost", figure),
    {title: "memory", value: (row) => row.peak_reserved, show: (row) => `${bytes(row.peak_reserved)} of ${bytes(row.device_memory)}`},
    ...(any("largest_batch") ? [{title: "batch to", value: (row: GpuRow) => row.largest_batch, show: (row: GpuRow) => row.largest_batch === undefined ? "" : whole(row.largest_batch)}] : []),
    {title: "limited by", value: (row) => row.bound, left: true},
    {title: "measured", value: (row) => row.measured, left: true},
  ];
}

function Pareto({all, rows}: {all: Compared; rows: GpuRow[]}) {
  const whole = rows.every((row) => row.run_cost !== undefined && row.run_hours !== undefined);
  const points = useMemo(() => rows.map((row) => ({
    name: shortGpu(row.gpu), x: whole ? row.run_hours ?? 0 : row.iter_ms, y: whole ? row.run_cost ?? 0 : row.cost_per_million_samples ?? 0, best: row.pareto,
  })).sort((a, b) => a.x - b.x), [rows]);
  const lines = useMemo(() => [
    {name: "no other is faster and cheaper", colour: "accent", points: true, values: points.map((point) => point.best ? point.y : null)},
    {name: "another is", colour: "faint", points: true, values: points.map((point) => point.best ? null : point.y)},
  ], [points]);
  const x = useMemo(() => points.map((point) => point.x), [points]);
  const money = all.currency ? ` (${all.currency})` : "";
  return (
    <Plot title={whole ? "Time and cost of the whole run" : "Time and cost"} note="GPUs that hold the run and have a price" x={x} lines={lines} names={points.map((point) => point.name)}
      xLabel={whole ? "hours" : "iteration, ms"} yLabel={(whole ? "cost of the run" : "cost a million samples") + money} xText={whole ? hours : ms} yText={figure} yTicks={tick} xTicks={tick} xFromZero
      csv={{header: ["gpu", whole ? "hours" : "iter_ms", "cost", "pareto"], rows: () => points.map((point) => [point.name, point.x, point.y, point.best])}} />
  );
}

export function CompareBody({all, explain}: {all: Compared; explain?: (gpu: string) => void}) {
  const able = all.gpus.filter((row) => !row.error);
  const unable = all.gpus.filter((row) => row.error);
  const priced = able.filter((row) => row.verdict === "fits" && row.cost_per_million_samples !== undefined);
  const bars: Bar[] = able.slice().sort((a, b) => a.iter_ms - b.iter_ms).map((row) => ({
    name: shortGpu(row.gpu), value: row.iter_ms, low: row.iter_low_ms, high: row.iter_high_ms, text: ms(row.iter_ms) + (row.verdict === "fits" ? "" : `, ${verdictText[row.verdict]}`),
    tone: row.verdict === "fits" ? "accent" : row.verdict === "may_not_fit" ? "warn" : "faint", hint: `${row.gpu}: ${withRange(row.iter_ms, row.iter_low_ms, row.iter_high_ms)}; ${verdictText[row.verdict]}`,
  }));
  return (
    <>
      <Section title="GPUs">
        <Bars title="Iteration time" note="The line: 8 of 10 such runs. Grey: does not fit in memory." unit="iter_ms" bars={bars} />
        {priced.length > 1 && <Pareto all={all} rows={priced} />}
        <Table title="All of them" note="measured: here, op by op; elsewhere, in tables of others; never: carried over from those" rows={able} first={60} columns={columnsOf(all, explain)} />
      </Section>
      <Notes title="Cannot run it" notes={unable.map((row) => `${row.gpu}: ${row.error}`)} />
    </>
  );
}

export function CompareView({answers, explain}: {answers: Compared[]; explain?: (gpu: string) => void}) {
  const all = answers[0];
  return all ? <><CompareVerdict all={all} /><CompareBody all={all} explain={explain} /></> : null;
}
