// Where the time of a profiler trace went: per GPU, by kernel, op and module, why it was idle, and what is on the critical path.
import {useMemo, useState} from "preact/hooks";
import type {Series} from "../answers";
import {ms, percent, plural, times, us, whole} from "../format";
import {Bars} from "../ui/bars";
import {Lanes} from "../ui/lanes";
import {Facts, Section, Stack, Verdict, Warnings, type Share} from "../ui/parts";
import {Plot} from "../ui/plot";
import {Table, type Column} from "../ui/table";

interface Used {
  name: string;
  count: number;
  gpu_us: number;
  host_us?: number;
  kind?: string;
  shortest_us?: number;
  longest_us?: number;
}

interface Device {
  device: number;
  events: number;
  span_us: number;
  idle_us: number;
  compute_us: number;
  non_compute_us: number;
  communication_us: number;
  exposed_communication_us: number;
  exposed_copy_us: number;
  overlap_percent: number;
  idle_causes: {host_wait_us: number; kernel_wait_us: number; other_us: number};
}

interface TraceFile {
  file: string;
  rank: number;
  gpu: string;
  events: {read: number; kept: number; repaired: number; skipped: number; truncated: boolean};
  device_work: number;
  linked_share: number;
  steps: {source: string; ms: number[]};
  devices: Device[];
  kernels: Used[];
  ops: Used[];
  modules: Used[];
  modules_named: boolean;
  phases: Used[];
  launches: Record<string, number>;
}

interface PathName {
  name: string;
  kind: string;
  us?: number;
  tasks?: number;
  on_path_us?: number;
  saved_us_if_twice_as_fast?: number;
}

export interface TraceAnswer {
  schema: string;
  files: TraceFile[];
  ranks: {ranks: {rank: number; file: string; clock_offset_us: number | null; collectives: number; arrived_last: number; kept_waiting_us: number; compute_us: number; communication_us: number; step_ms: number}[]; matched_collectives: number; straggler: number | null};
  critical_path: {simulated_us: number; measured_us: number; tasks: number; host_us: number; gpu_us: number; communication_us: number; waits_us: number; names: PathName[]; levers: PathName[]} | null;
  warnings: string[];
}

export interface TraceTimeline {
  from: number;
  to: number;
  length_ns: number;
  events: number;
  lanes: {lane: number; kind: string; process: number; thread: number; name: string; depth: number; start: number[]; end: number[]; events: number[]; name_of: number[]; kind_of: string[]}[];
  names: Record<string, string>;
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);

function timeShares(device: Device): Share[] {
  const copies = device.exposed_copy_us, exchange = device.exposed_communication_us;
  const other = Math.max(0, device.non_compute_us - copies - exchange);
  return [
    {name: "computes", value: device.compute_us, colour: "k1"}, {name: "exchange that nothing hides", value: exchange, colour: "k4"},
    {name: "copies that nothing hides", value: copies, colour: "k6"}, {name: "else", value: other, colour: "k5"},
    {name: "idle: nothing launched yet", value: device.idle_causes.host_wait_us, colour: "soft"}, {name: "idle: between kernels", value: device.idle_causes.kernel_wait_us, colour: "k8"},
    {name: "idle: else", value: device.idle_causes.other_us, colour: "faint"},
  ];
}

function usedColumns(kernels: boolean): Column<Used>[] {
  return [
    {title: "name", value: (row) => row.name, left: true, wide: true}, {title: "GPU time", value: (row) => row.gpu_us, show: (row) => us(row.gpu_us)},
    {title: "times", value: (row) => row.count, show: (row) => whole(row.count)}, {title: "each", value: (row) => row.gpu_us / Math.max(row.count, 1), show: (row) => us(row.gpu_us / Math.max(row.count, 1))},
    ...(kernels ? [{title: "shortest", value: (row: Used) => row.shortest_us, show: (row: Used) => us(row.shortest_us ?? 0)}, {title: "longest", value: (row: Used) => row.longest_us, show: (row: Used) => us(row.longest_us ?? 0)}, {title: "kind", value: (row: Used) => row.kind, left: true}]
      : [{title: "host time", value: (row: Used) => row.host_us, show: (row: Used) => us(row.host_us ?? 0)}]),
  ];
}

function usedBars(title: string, rows: Used[]) {
  const sum = rows.reduce((total, row) => total + row.gpu_us, 0);
  const top = rows.filter((row) => row.gpu_us > 0).slice(0, 10);
  if (top.length === 0) return null;
  return <Bars title={title} unit="us" bars={top.map((row) => ({name: row.name, value: row.gpu_us, text: `${us(row.gpu_us)}, ${percent(row.gpu_us / sum)}`, hint: `${row.name}: ${plural(row.count, "time")}, ${us(row.gpu_us)}`}))} />;
}

const kKindColours: Record<string, string> = {
  kernel: "k1", copy: "k6", fill: "k9", op: "k2", runtime: "k8", driver: "k8", python: "k5", annotation: "k4", gpu_annotation: "k4", sync: "soft", overhead: "k7",
};

const laneName = (lane: TraceTimeline["lanes"][number]): string =>
  (lane.kind === "GPU stream" ? `GPU ${lane.process} stream ${lane.thread}` : lane.kind === "host thread" ? lane.name || `thread ${lane.thread}` : `${lane.kind} ${lane.thread}`) + (lane.depth > 0 ? `, ${lane.depth + 1}` : "");

export function TimelineChart({timeline, title = "Timeline", onView}: {timeline: TraceTimeline; title?: string; onView?: (from: number, to: number) => void}) {
  const chart = useMemo(() => {
    const kinds = [...new Set(timeline.lanes.flatMap((lane) => lane.kind_of))];
    const lane: number[] = [], from: number[] = [], to: number[] = [], tone: number[] = [], name: string[] = [], count: number[] = [];
    timeline.lanes.forEach((row, k) => row.start.forEach((start, i) => {
      lane.push(k); from.push(start); to.push(row.end[i] ?? start); tone.push(kinds.indexOf(row.kind_of[i] ?? "")); name.push(timeline.names[String(row.name_of[i])] ?? ""); count.push(row.events[i] ?? 1);
    }));
    const text = (i: number) => {
      const time = us(((to[i] ?? 0) - (from[i] ?? 0)) / 1000), at = us((from[i] ?? 0) / 1000);
      return (count[i] ?? 1) > 1 ? `${whole(count[i] ?? 1)} events, the longest ${name[i]}: ${time} from ${at} on` : `${name[i]}: ${time} at ${at}`;
    };
    return {kinds, name, count, lanes: timeline.lanes.map(laneName), slices: {lane, from, to, tone, text}};
  }, [timeline]);
  const {kinds, slices} = chart;
  const merged = chart.count.some((count) => count > 1);
  return (
    <Lanes title={title} note={`${plural(timeline.events, "event")}.${merged ? " Those too short to see are drawn together." : ""}`} lanes={chart.lanes} slices={slices}
      tones={kinds.map((kind) => ({name: kind.replace(/_/g, " "), colour: kKindColours[kind] ?? "k8"}))}
      begin={0} end={Math.max(timeline.length_ns, 1)} timeText={(value) => us(value / 1000)} rowHeight={18} onView={onView}
      csv={{header: ["lane", "from_ns", "to_ns", "name", "kind", "events"], rows: () => slices.lane.map((lane, i) => [chart.lanes[lane], slices.from[i], slices.to[i], chart.name[i], kinds[slices.tone[i] ?? 0], chart.count[i]])}} />
  );
}

function Rank({file}: {file: TraceFile}) {
  const [tab, setTab] = useState<"kernels" | "ops" | "modules" | "phases">("kernels");
  const lists = {kernels: file.kernels, ops: file.ops, modules: file.modules, phases: file.phases};
  const steps = file.steps.ms;
  const x = useMemo(() => steps.map((_, i) => i + 1), [steps]);
  const lines = useMemo(() => [{name: "iteration", colour: "accent", values: steps}], [steps]);
  return (
    <>
      {file.devices.map((device) => (
        <Section key={device.device} title={`GPU ${device.device}: ${us(device.span_us)} of work`}>
          <Stack label="Where the time went" shares={timeShares(device)} whole={device.span_us} text={us} />
        </Section>
      ))}
      {steps.length > 2 && <Plot title="Iterations" note={`Found by ${file.steps.source}`} x={x} lines={lines} xLabel="iteration" yLabel="ms" xText={(value) => `iteration ${value}`} xTicks={whole} yText={ms} yTicks={(value) => whole(value)} height={200} />}
      <Section title="What ran">
        <div class="tabs" role="group" aria-label="What ran">
          {(["kernels", "ops", "modules", "phases"] as const).filter((name) => lists[name].length > 0).map((name) => <button key={name} type="button" aria-pressed={tab === name} onClick={() => setTab(name)}>{name}</button>)}
        </div>
        {usedBars(`Longest ${tab}`, lists[tab])}
        <Table key={tab} title={`All ${tab} listed`} rows={lists[tab]} columns={usedColumns(tab === "kernels")} note={tab === "modules" && !file.modules_named ? "The trace names no modules; record with_modules=True." : undefined} />
      </Section>
    </>
  );
}

export function TraceBody({all, series}: {all: TraceAnswer; series: Series}) {
  const [rank, setRank] = useState(0);
  const file = all.files[rank] ?? all.files[0];
  const path = all.critical_path;
  return (
    <>
      {all.files.length > 1 && <div class="tabs" role="group" aria-label="Rank">{all.files.map((one, i) => <button key={i} type="button" aria-pressed={i === rank} onClick={() => setRank(i)}>{one.rank >= 0 ? `rank ${one.rank}` : one.file}</button>)}</div>}
      {file && <Rank key={rank} file={file} />}
      {series.timeline !== undefined && <TimelineChart timeline={series.timeline as TraceTimeline} />}
      {path && (
        <Section title="The critical path">
          <Stack label="Critical path" text={us} shares={[{name: "host", value: path.host_us, colour: "k2"}, {name: "GPU", value: path.gpu_us, colour: "k1"}, {name: "exchange", value: path.communication_us, colour: "k4"}, {name: "waits", value: path.waits_us, colour: "faint"}]} />
          {path.levers.length > 0 && <Bars title="What would shorten the trace" note="Time saved were it twice as fast" unit="us" bars={path.levers.slice(0, 10).map((lever) => ({name: lever.name, value: lever.saved_us_if_twice_as_fast ?? 0, text: us(lever.saved_us_if_twice_as_fast ?? 0), hint: `${lever.name} (${lever.kind}): ${us(lever.on_path_us ?? 0)} on the path`}))} />}
          <Table title="On the path" rows={path.names} columns={[
            {title: "name", value: (row) => row.name, left: true, wide: true}, {title: "kind", value: (row) => row.kind, left: true},
            {title: "time", value: (row) => row.us, show: (row) => us(row.us ?? 0)}, {title: "tasks", value: (row) => row.tasks, show: (row) => whole(row.tasks ?? 0)}]} />
        </Section>
      )}
      {all.ranks.ranks.length > 1 && (
        <Section title="Ranks">
          <Bars title="Time that a rank kept the others waiting" unit="us" bars={all.ranks.ranks.map((row) => ({name: `rank ${row.rank}`, value: row.kept_waiting_us, text: us(row.kept_waiting_us), tone: row.rank === all.ranks.straggler ? "warn" as const : "accent" as const}))} />
          <Table title="Ranks in figures" rows={all.ranks.ranks} columns={[
            {title: "rank", value: (row) => row.rank}, {title: "iteration", value: (row) => row.step_ms, show: (row) => ms(row.step_ms)}, {title: "computes", value: (row) => row.compute_us, show: (row) => us(row.compute_us)},
            {title: "exchange", value: (row) => row.communication_us, show: (row) => us(row.communication_us)}, {title: "came last", value: (row) => row.arrived_last, show: (row) => `${whole(row.arrived_last)} of ${whole(row.collectives)}`},
            {title: "clock ahead", value: (row) => row.clock_offset_us, show: (row) => row.clock_offset_us === null ? "" : us(row.clock_offset_us)}, {title: "file", value: (row) => row.file, left: true, wide: true}]} />
        </Section>
      )}
    </>
  );
}

function idleCause(device: Device): string {
  const {host_wait_us, kernel_wait_us, other_us} = device.idle_causes;
  if (Math.max(host_wait_us, kernel_wait_us, other_us) === 0) return "";
  return host_wait_us >= Math.max(kernel_wait_us, other_us) ? "mostly since nothing was launched yet" : kernel_wait_us >= other_us ? "mostly in short pauses between kernels" : "mostly for other reasons";
}

export function TraceView({answers, series}: {answers: TraceAnswer[]; series: Series}) {
  const all = answers[0];
  const file = all?.files[0];
  if (!all || !file) return <Verdict>The trace has no events.</Verdict>;
  const device = file.devices[0];
  const step = mean(file.steps.ms);
  return (
    <>
      <Warnings warnings={all.warnings} />
      <Verdict below={<>{file.file}{file.gpu && `, ${file.gpu}`}; {plural(file.steps.ms.length, "iteration")} by {file.steps.source}.</>}>
        {step > 0 && <>An iteration takes {ms(step)}. </>}
        {device ? <>The GPU computes for <em>{percent(device.compute_us / device.span_us)}</em> of the time{device.idle_us > 0 && <> and is idle for {percent(device.idle_us / device.span_us)}, {idleCause(device)}</>}.</> : "No work on a GPU was recorded."}
      </Verdict>
      <Facts facts={[
        {name: "Iteration", value: ms(step), more: file.steps.ms.length > 1 ? `${ms(Math.min(...file.steps.ms))} to ${ms(Math.max(...file.steps.ms))}` : undefined},
        device && {name: "GPU computes", value: us(device.compute_us), more: percent(device.compute_us / device.span_us)}, device && {name: "GPU idle", value: us(device.idle_us), more: percent(device.idle_us / device.span_us)},
        device && device.communication_us > 0 && {name: "Exchange", value: us(device.communication_us), more: `${percent(device.overlap_percent / 100)} hidden`},
        {name: "Work on the GPU", value: whole(file.device_work), more: `${percent(file.linked_share)} with their launch`}, {name: "Events", value: whole(file.events.read), more: file.events.skipped ? `${whole(file.events.skipped)} broken ones left out` : undefined},
        file.launches.delay_median_us !== undefined && {name: "From launch to start", value: us(file.launches.delay_median_us), more: "median"},
      ]} />
      <TraceBody all={all} series={series} />
    </>
  );
}

interface Changed {
  name: string;
  count_before: number;
  count_after: number;
  before_us: number;
  after_us: number;
  change_us: number;
}

export interface TraceCompare {
  schema: string;
  before: TraceAnswer;
  after: TraceAnswer;
  changes: {step_before_ms: number; step_after_ms: number; kernels: Changed[]; ops: Changed[]};
}

const kChanged: Column<Changed>[] = [
  {title: "name", value: (row) => row.name, left: true, wide: true}, {title: "before", value: (row) => row.before_us, show: (row) => us(row.before_us)},
  {title: "after", value: (row) => row.after_us, show: (row) => us(row.after_us)}, {title: "change", value: (row) => row.change_us, show: (row) => `${row.change_us > 0 ? "+" : ""}${us(row.change_us)}`},
  {title: "times before", value: (row) => row.count_before, show: (row) => whole(row.count_before)}, {title: "after", value: (row) => row.count_after, show: (row) => whole(row.count_after)},
];

interface Figure {
  name: string;
  before: number;
  after: number;
  show: (value: number) => string;
}

// The overview of both, a row a figure; what neither has is left out.
function figuresOf(all: TraceCompare): Figure[] {
  const one = (answer: TraceAnswer) => ({file: answer.files[0], device: answer.files[0]?.devices[0]});
  const before = one(all.before), after = one(all.after);
  const of = (name: string, value: (side: ReturnType<typeof one>) => number | undefined, show: (value: number) => string): Figure =>
    ({name, before: value(before) ?? 0, after: value(after) ?? 0, show});
  return [
    {name: "iteration", before: all.changes.step_before_ms, after: all.changes.step_after_ms, show: ms},
    of("GPU computes", ({device}) => device?.compute_us, us), of("GPU idle", ({device}) => device?.idle_us, us),
    of("idle: nothing launched yet", ({device}) => device?.idle_causes.host_wait_us, us), of("idle: between kernels", ({device}) => device?.idle_causes.kernel_wait_us, us),
    of("exchange", ({device}) => device?.communication_us, us), of("exchange that nothing hides", ({device}) => device?.exposed_communication_us, us),
    of("copies that nothing hides", ({device}) => device?.exposed_copy_us, us), of("work on the GPU, number", ({file}) => file?.device_work, whole),
    of("from launch to start, median", ({file}) => file?.launches.delay_median_us, us), of("iterations recorded", ({file}) => file?.steps.ms.length, whole),
  ].filter((figure) => figure.before !== 0 || figure.after !== 0);
}

const kFigures: Column<Figure>[] = [
  {title: "figure", value: (row) => row.name, left: true}, {title: "before", value: (row) => row.before, show: (row) => row.show(row.before)},
  {title: "after", value: (row) => row.after, show: (row) => row.show(row.after)},
  {title: "change", value: (row) => row.after - row.before, show: (row) => `${row.after > row.before ? "+" : row.after < row.before ? "\u2212" : ""}${row.show(Math.abs(row.after - row.before))}`},
  {title: "share", value: (row) => row.before === 0 ? null : row.after / row.before - 1, show: (row) => row.before === 0 ? "" : `${row.after > row.before ? "+" : ""}${percent(row.after / row.before - 1)}`},
];

export function TraceCompareView({answers}: {answers: TraceCompare[]}) {
  const all = answers[0];
  if (!all) return null;
  const {step_before_ms: before, step_after_ms: after} = all.changes;
  const name = (answer: TraceAnswer) => answer.files[0]?.file ?? "";
  const device = (answer: TraceAnswer) => answer.files[0]?.devices[0];
  const several = Math.max(all.before.files.length, all.after.files.length) > 1;
  const slower = all.changes.kernels.filter((row) => row.change_us > 0).slice(0, 8), faster = all.changes.kernels.filter((row) => row.change_us < 0).slice(0, 8);
  return (
    <>
      <Verdict tone={after <= before ? "good" : "bad"} below={`From ${name(all.before)} to ${name(all.after)}${several ? ", the first rank of each" : ""}.`}>
        {before > 0 && after > 0 ? <>An iteration goes from {ms(before)} to {ms(after)}: <em>{after <= before ? `${times(before / after)} as fast` : `${times(after / before)} as long`}</em>.</> : "The traces have no iterations in common."}
      </Verdict>
      <Section title="Where the time went">
        {[["before", all.before], ["after", all.after]].map(([label, answer]) => {
          const one = device(answer as TraceAnswer);
          return one && <div key={label as string}><h3>{label as string}: {us(one.span_us)}</h3><Stack label={`Time ${label as string}`} shares={timeShares(one)} whole={one.span_us} text={us} /></div>;
        })}
      </Section>
      <Section title="Side by side"><Table title="Overview" rows={figuresOf(all)} columns={kFigures} /></Section>
      <Section title="What changed">
        <div class="pair">
          {slower.length > 0 && <Bars title="Kernels that take longer" unit="us" bars={slower.map((row) => ({name: row.name, value: row.change_us, text: `+${us(row.change_us)}`, tone: "bad"}))} />}
          {faster.length > 0 && <Bars title="Kernels that take less" unit="us" bars={faster.map((row) => ({name: row.name, value: -row.change_us, text: `\u2212${us(-row.change_us)}`}))} />}
        </div>
        <Table title="Kernels" rows={all.changes.kernels} columns={kChanged} />
        <Table title="Ops" rows={all.changes.ops} columns={kChanged} />
      </Section>
    </>
  );
}
