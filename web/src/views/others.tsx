// Answers that are a sentence, a chart and a table: replays, recordings, catalogues, guards.
import {useMemo} from "preact/hooks";
import type {Answer} from "../answers";
import {bytes, figure, ms, percent, plural, short, whole, tick} from "../format";
import {Bars} from "../ui/bars";
import {Facts, Notes, Section, Verdict} from "../ui/parts";
import {Plot, type Line} from "../ui/plot";
import {Table} from "../ui/table";
import {RecordBody, RecordTable} from "./generic";

export interface Replay {
  schema: string;
  file: string;
  measured_ms: number;
  simulated_ms: number;
  error: number;
  lags: string;
  tasks: number;
  dependencies: number;
  linked: number;
  inferred_syncs: number;
  iterations_by: string;
  ranks: number;
}

export function ReplayView({answers}: {answers: Replay[]}) {
  const error = answers.reduce((sum, row) => sum + row.error, 0) / Math.max(answers.length, 1);
  return (
    <>
      <Verdict below={answers.some((row) => row.lags === "own") ? "Each launch, kernel and sync has its own lag: an error of 0 is so by construction." : "Launches, kernels and syncs take the trace's usual lags."}>
        {plural(answers.length, "trace")} simulated unchanged: <em>{percent(error)}</em> off on average.
      </Verdict>
      <Section title="Measured against simulated">
      <Bars title="Iteration, simulated; the line: as traced" unit="ms" bars={answers.slice(0, 40).map((row) => ({name: row.file.replace(/^.*\//, ""), value: row.simulated_ms, low: row.measured_ms, high: row.measured_ms, text: `${ms(row.simulated_ms)}, ${percent(row.error)} off`}))} />
      <Table title="Traces" rows={answers} first={40} columns={[
        {title: "file", value: (row) => row.file, left: true, wide: true}, {title: "traced", value: (row) => row.measured_ms, show: (row) => ms(row.measured_ms)}, {title: "simulated", value: (row) => row.simulated_ms, show: (row) => ms(row.simulated_ms)},
        {title: "error", value: (row) => row.error, show: (row) => percent(row.error)}, {title: "tasks", value: (row) => row.tasks, show: (row) => whole(row.tasks)}, {title: "linked", value: (row) => row.linked, show: (row) => percent(row.linked)},
        {title: "inferred", value: (row) => row.inferred_syncs}, {title: "ranks", value: (row) => row.ranks}, {title: "iterations by", value: (row) => row.iterations_by, left: true}]} />
      </Section>
    </>
  );
}

interface Peak {
  simulated: number;
  measured: number;
  exact: boolean;
  error: number;
}

interface Total {
  exact: number;
  mean_error: number;
}

export type MemoryReplay = {schema: string; id: string; family: string; events: number; requested: Peak; allocated: Peak; reserved: Peak; retries: number; misplaced?: number}
  | {schema: string; traces: number; requested: Total; allocated: Total; reserved: Total; with_addresses: number; placed_exactly: number; allocations: number; misplaced: number};

export function MemoryReplayView({answers}: {answers: MemoryReplay[]}) {
  const rows = answers.flatMap((row) => "id" in row ? [row] : []);
  const total = answers.flatMap((row) => "traces" in row ? [row] : [])[0];
  const peak = (title: string, of: (row: typeof rows[number]) => Peak) => [
    {title, value: (row: typeof rows[number]) => of(row).simulated, show: (row: typeof rows[number]) => bytes(of(row).simulated)},
    {title: "off", value: (row: typeof rows[number]) => of(row).error, show: (row: typeof rows[number]) => of(row).exact ? "exact" : percent(of(row).error)}];
  return (
    <>
      {total && <Verdict tone={total.reserved.exact === total.traces ? "good" : "plain"} below={`${whole(total.placed_exactly)} of ${whole(total.with_addresses)} traces with addresses have every block at its recorded place.`}>
        <em>{whole(total.reserved.exact)} of {whole(total.traces)}</em> recorded traces give exactly the recorded peak of reserved memory.</Verdict>}
      {total && <Facts facts={[
        {name: "Requested, exact", value: `${whole(total.requested.exact)} of ${whole(total.traces)}`}, {name: "Allocated, exact", value: `${whole(total.allocated.exact)} of ${whole(total.traces)}`},
        {name: "Reserved, exact", value: `${whole(total.reserved.exact)} of ${whole(total.traces)}`, more: `mean error ${percent(total.reserved.mean_error)}`}, {name: "Misplaced", value: whole(total.misplaced), more: `of ${whole(total.allocations)} allocations`}]} />}
      <Section title="Recorded traces">
      <Table title="Peaks" rows={rows} first={40} columns={[
        {title: "run", value: (row) => row.id, left: true, wide: true}, {title: "family", value: (row) => row.family, left: true}, {title: "events", value: (row) => row.events, show: (row) => whole(row.events)},
        ...peak("requested", (row) => row.requested), ...peak("allocated", (row) => row.allocated), ...peak("reserved", (row) => row.reserved), {title: "retries", value: (row) => row.retries}]} />
      </Section>
    </>
  );
}

interface Metric {
  pattern: string;
  idle_ms: number;
  burst_ms: number;
  amount: number;
  mean: number;
  bursts: number;
  idles: number;
}

export interface Recording {
  schema: string;
  command?: string[];
  exit_code?: number;
  window_ms?: number;
  iteration_ms?: number;
  model?: string;
  setting?: string;
  gpu?: string;
  series: Record<string, number[] | number>;
  metrics: Record<string, Metric>;
}

const kResources: [string, string, boolean][] = [["gpu", "GPU", false], ["memory", "GPU memory", false], ["send", "sent", true], ["receive", "received", true]];

function ResourcePlot({all, network}: {all: Recording; network: boolean}) {
  const step = Number(network ? all.series.network_step_ms ?? all.series.step_ms : all.series.gpu_step_ms ?? 0);
  const unit = network ? Number(all.series.network_unit ?? 1) / 1e6 : Number(all.series.gpu_unit ?? 1);
  const lines = useMemo<Line[]>(() => kResources.filter(([name, , net]) => net === network && Array.isArray(all.series[name])).map(([name, label], i) => ({
    name: label, colour: i ? "k4" : "accent", values: (all.series[name] as number[]).map((value) => value * unit), width: 1.5})), [all, network]);
  const x = useMemo(() => (lines[0]?.values ?? []).map((_, i) => i * step), [lines, step]);
  if (lines.length === 0) return null;
  return <Plot title={network ? "Network" : "GPU"} x={x} lines={lines} xLabel="ms" yLabel={network ? "MB/s" : "percent"} xText={ms} xTicks={whole} yText={(value) => `${figure(value)} ${network ? "MB/s" : "%"}`} yTicks={tick} height={220} />;
}

const kPatterns: Record<string, string> = {I: "idle throughout", BIB: "bursts and idles", B: "busy throughout"};

export function RecordingView({answers}: {answers: Recording[]}) {
  const all = answers[0];
  if (!all) return null;
  const rows = kResources.flatMap(([name, label, net]) => all.metrics[name] ? [{label, unit: net ? "MB/s" : "%", ...all.metrics[name]}] : []);
  const simulated = all.iteration_ms !== undefined;
  return (
    <>
      <Verdict below={simulated ? `${all.model}, ${all.setting}, on ${all.gpu}: an iteration takes ${ms(all.iteration_ms ?? 0)}. Simulated.` : `${(all.command ?? []).join(" ") || "No command"}; ${ms(all.window_ms ?? 0)} recorded${all.exit_code ? `, exit code ${all.exit_code}` : ""}.`}>
        {rows.map((row) => `${row.label.charAt(0).toUpperCase()}${row.label.slice(1)}: ${kPatterns[row.pattern] ?? row.pattern}`).join(". ")}.
      </Verdict>
      <Section title="Over time">
      <ResourcePlot all={all} network={false} />
      <ResourcePlot all={all} network />
      <Table title="Bursts and idles" rows={rows} columns={[
        {title: "resource", value: (row) => row.label, left: true}, {title: "pattern", value: (row) => kPatterns[row.pattern] ?? row.pattern, left: true}, {title: "burst", value: (row) => row.burst_ms, show: (row) => ms(row.burst_ms)},
        {title: "idle", value: (row) => row.idle_ms, show: (row) => ms(row.idle_ms)}, {title: "level of a burst", value: (row) => row.amount, show: (row) => `${figure(row.amount)} ${row.unit}`},
        {title: "mean", value: (row) => row.mean, show: (row) => `${figure(row.mean)} ${row.unit}`}, {title: "bursts", value: (row) => row.bursts}, {title: "idles", value: (row) => row.idles}]} />
      </Section>
    </>
  );
}

export interface DeviceRow {
  schema: string;
  name: string;
  aliases: string[];
  architecture: string;
  measured: string;
  power_w?: number;
  sm_count?: number;
  memory: number;
  memory_bandwidth: number;
  fp32?: number;
  tf32_tensor?: number;
  bf16_tensor?: number;
  fp16_tensor?: number;
  evidence?: {runs?: number; expected_error?: number; expected_from?: string};
}

export function DevicesView({answers}: {answers: DeviceRow[]}) {
  const rate = (title: string, of: (row: DeviceRow) => number | undefined) => ({title, value: of, show: (row: DeviceRow) => of(row) === undefined ? "" : figure((of(row) ?? 0) / 1e12)});
  return (
    <>
      <Verdict below="Rates in 10^12 operations a second, as the makers state them; expected error: of iteration times.">{plural(answers.length, "GPU")} can be predicted.</Verdict>
      <Section title="GPUs">
      <Bars title="Memory bandwidth" unit="bytes/s" bars={answers.slice().sort((a, b) => b.memory_bandwidth - a.memory_bandwidth).map((row) => ({name: row.name, value: row.memory_bandwidth, text: `${figure(row.memory_bandwidth / 1e9)} GB/s`}))} />
      <Table title="All of them" rows={answers} first={60} columns={[
        {title: "GPU", value: (row) => row.name, left: true}, {title: "called", value: (row) => row.aliases.join(", "), left: true, wide: true}, {title: "memory", value: (row) => row.memory, show: (row) => bytes(row.memory)},
        {title: "GB/s", value: (row) => row.memory_bandwidth, show: (row) => figure(row.memory_bandwidth / 1e9)}, rate("fp32", (row) => row.fp32), rate("tf32", (row) => row.tf32_tensor), rate("bf16", (row) => row.bf16_tensor),
        {title: "watts", value: (row) => row.power_w}, {title: "measured", value: (row) => row.measured, left: true}, {title: "expected error", value: (row) => row.evidence?.expected_error, show: (row) => row.evidence?.expected_error === undefined ? "" : percent(row.evidence.expected_error)}]} />
      </Section>
    </>
  );
}

export interface FamilyCheck {
  schema: string;
  family: string;
  records: number;
  by_time: number | null;
  by_count: number;
  ops: number;
  surplus_ops: number;
  misses: Record<string, unknown>[];
}

export function ZooCheckView({answers}: {answers: FamilyCheck[]}) {
  const ops = answers.reduce((sum, row) => sum + row.ops, 0);
  const matched = answers.reduce((sum, row) => sum + row.ops * row.by_count, 0) / Math.max(ops, 1);
  const misses = answers.flatMap((row) => row.misses.map((miss) => ({family: row.family, ...miss})));
  return (
    <>
      <Verdict below={`${plural(answers.length, "family", "families")}, ${plural(answers.reduce((sum, row) => sum + row.records, 0), "record")}.`}><em>{percent(matched)}</em> of {whole(ops)} recorded ops are derived alike.</Verdict>
      <Section title="Derived against recorded">
      <Table title="Families" rows={answers} first={60} columns={[
        {title: "family", value: (row) => row.family, left: true}, {title: "records", value: (row) => row.records}, {title: "ops", value: (row) => row.ops, show: (row) => whole(row.ops)},
        {title: "matched", value: (row) => row.by_count, show: (row) => percent(row.by_count)}, {title: "by time", value: (row) => row.by_time, show: (row) => row.by_time === null ? "" : percent(row.by_time)},
        {title: "derived beside them", value: (row) => row.surplus_ops, show: (row) => whole(row.surplus_ops)}]} />
      </Section>
      {misses.length > 0 && <RecordTable title="What is not matched, costliest first" rows={misses} />}
    </>
  );
}

export interface Guards {
  schema: string;
  passes: boolean;
  lock: string;
  predicted_by: string;
  guards: {name: string; passes: boolean; gpu: string; iter_ms: number; reserved_gib: number; verdict: string; baseline: {iter_ms: number; reserved_gib: number} | null; rules: {rule: string; verdict: string; change: number | null; limit: number | null}[]; notes: string[]}[];
}

export function CheckView({answers}: {answers: Guards[]}) {
  const all = answers[0];
  if (!all) return null;
  const failing = all.guards.filter((guard) => !guard.passes);
  return (
    <>
      <Verdict tone={all.passes ? "good" : "bad"} below={`Held to ${all.lock}; predicted by ${all.predicted_by}.`}>
        {all.passes ? <>{plural(all.guards.length, "guard")} <em>hold</em>.</> : <><em>{plural(failing.length, "guard")}</em> of {all.guards.length} fail: {failing.map((guard) => guard.name).join(", ")}.</>}
      </Verdict>
      <Section title="Guards">
      <Table title="All of them" rows={all.guards} first={60} columns={[
        {title: "guard", value: (row) => row.name, left: true, wide: true}, {title: "verdict", value: (row) => row.passes ? "holds" : "fails", left: true, show: (row) => <span class={`tag ${row.passes ? "good" : "bad"}`}>{row.passes ? "holds" : "fails"}</span>},
        {title: "iteration", value: (row) => row.iter_ms, show: (row) => ms(row.iter_ms)}, {title: "before", value: (row) => row.baseline?.iter_ms, show: (row) => row.baseline ? ms(row.baseline.iter_ms) : ""},
        {title: "reserved", value: (row) => row.reserved_gib, show: (row) => `${figure(row.reserved_gib)} GiB`}, {title: "before", value: (row) => row.baseline?.reserved_gib, show: (row) => row.baseline ? `${figure(row.baseline.reserved_gib)} GiB` : ""},
        {title: "rules", value: (row) => row.rules.map((rule) => `${rule.rule.replace(/_/g, " ")}: ${rule.verdict.replace(/_/g, " ")}`).join("; "), left: true, wide: true}]} />
      </Section>
      <Notes title="Notes" notes={all.guards.flatMap((guard) => guard.notes.map((note) => `${guard.name}: ${note}`))} open />
    </>
  );
}

export function DataSummaryView({answers}: {answers: Answer[]}) {
  const all = answers[0];
  if (!all) return null;
  const counts = Object.entries(all).filter((entry): entry is [string, Record<string, number>] => typeof entry[1] === "object" && entry[1] !== null && !Array.isArray(entry[1]) && Object.values(entry[1]).length > 1 && Object.values(entry[1]).every((value) => typeof value === "number"));
  const numbers = Object.entries(all).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return (
    <>
      <Verdict>{numbers.slice(0, 2).map(([name, value]) => `${whole(value)} ${name.replace(/_/g, " ")}`).join(", ")}.</Verdict>
      {counts.map(([name, values]) => {
        const rows = Object.entries(values).sort((a, b) => b[1] - a[1]).slice(0, 24);
        return <Section key={name} title={name.replace(/_/g, " ")}><Bars title={`By ${name.replace(/_/g, " ")}`} note={Object.keys(values).length > rows.length ? `The ${rows.length} most of ${Object.keys(values).length}` : undefined} unit="records" bars={rows.map(([label, value]) => ({name: label, value, text: short(value)}))} /></Section>;
      })}
      <RecordBody record={Object.fromEntries(Object.entries(all).filter(([name]) => !counts.some(([count]) => count === name)))} />
    </>
  );
}
