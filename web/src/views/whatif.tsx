// What optimizations would bring: before and after, ranked, with ranges; or along a parameter.
import {useMemo} from "preact/hooks";
import {figure, ms, msRange, percent, times, withRange, tick} from "../format";
import {Bars} from "../ui/bars";
import {Facts, Notes, Section, Verdict} from "../ui/parts";
import {Plot, type Line} from "../ui/plot";
import {Table, type Column} from "../ui/table";

export interface WhatIf {
  schema: string;
  file: string;
  applied: string[];
  baseline_ms: number;
  predicted_ms: number;
  low_ms: number;
  high_ms: number;
  baseline_gpu_ms: number;
  predicted_gpu_ms: number;
  unprofiled: boolean;
  assumptions: string[];
}

const name = (one: WhatIf): string => one.applied.join(" + ") || "nothing";
const saved = (one: WhatIf): number => 1 - one.predicted_ms / one.baseline_ms;

const kColumns: Column<WhatIf>[] = [
  {title: "optimization", value: name, left: true, wide: true},
  {title: "iteration", value: (one) => one.predicted_ms, show: (one) => ms(one.predicted_ms)},
  {title: "range", value: (one) => one.high_ms, show: (one) => msRange(one.low_ms, one.high_ms)},
  {title: "saves", value: saved, show: (one) => percent(saved(one))},
  {title: "speed", value: (one) => one.baseline_ms / one.predicted_ms, show: (one) => times(one.baseline_ms / one.predicted_ms)},
  {title: "GPU busy", value: (one) => one.predicted_gpu_ms, show: (one) => ms(one.predicted_gpu_ms)},
];

function WhatIfBars({all}: {all: WhatIf[]}) {
  const before = all[0]?.baseline_ms ?? 0;
  return (
    <Bars title="Iteration with each" note="The line: where 8 of 10 measurements should lie" unit="ms" bars={[
      {name: "as it is", value: before, text: ms(before), tone: "faint"},
      ...all.map((one) => ({
        name: name(one), value: one.predicted_ms, low: one.low_ms, high: one.high_ms, text: `${ms(one.predicted_ms)}, ${Math.abs(saved(one)) < 0.0005 ? "as before" : `${saved(one) > 0 ? "\u2212" : "+"}${percent(Math.abs(saved(one)))}`}`,
        tone: saved(one) > 0.0005 ? "accent" as const : "faint" as const, hint: `${name(one)}: ${withRange(one.predicted_ms, one.low_ms, one.high_ms)}. ${one.assumptions.join("; ")}`,
      }))]} />
  );
}

export function WhatIfView({answers, heading = true}: {answers: WhatIf[]; heading?: boolean}) {
  const best = answers[0];
  if (!best) return <Verdict>No optimization applies.</Verdict>;
  const file = best.file;
  const gain = saved(best);
  const predicted = best.assumptions.some((text) => text.startsWith("the iteration as `forerun predict` sees it"));
  const assumptions = [...new Set(answers.flatMap((one) => one.assumptions.map((text) => answers.length > 1 ? `${name(one)}: ${text}` : text)))];
  return (
    <>
      {heading && <Verdict tone={gain > 0.0005 ? "good" : "warn"} below={<>{file}: from {ms(best.baseline_ms)} to {withRange(best.predicted_ms, best.low_ms, best.high_ms)}.{best.unprofiled && !predicted ? " What the profiler cost is taken out." : ""}</>}>
        {gain > 0.0005 ? <><em>{name(best)}</em> {answers.length > 1 ? "would bring most: " : "makes "}an iteration {percent(gain)} shorter.</>
          : gain < -0.0005 ? <><em>{name(best)}</em> makes an iteration {percent(-gain)} longer.</> : <><em>{name(best)}</em> changes nothing.</>}
      </Verdict>}
      {answers.length === 1 && (
        <Facts facts={[
          {name: "Iteration before", value: ms(best.baseline_ms)}, {name: "Iteration after", value: ms(best.predicted_ms), more: msRange(best.low_ms, best.high_ms)},
          {name: "Speed", value: times(best.baseline_ms / best.predicted_ms), more: `${figure(best.baseline_ms / best.high_ms)} to ${figure(best.baseline_ms / best.low_ms)}`},
          {name: "GPU busy before", value: ms(best.baseline_gpu_ms)}, {name: "GPU busy after", value: ms(best.predicted_gpu_ms)},
        ]} />
      )}
      <Section title={answers.length > 1 ? "Ranked" : "Before and after"}>
        <WhatIfBars all={answers} />
        <Table title="In figures" rows={answers} columns={kColumns} first={40} />
      </Section>
      <Notes title="Assumptions" notes={assumptions} />
    </>
  );
}

export interface WhatIfSweep {
  schema: string;
  file: string;
  key: string;
  values: string[];
  baseline_ms: number;
  curves: {applied: string[]; points: {value: string; predicted_ms: number; low_ms: number; high_ms: number; predicted_gpu_ms: number; assumptions: string[]}[]}[];
}

const kColours = ["k1", "k4", "k6", "k5", "k7", "k9", "k3", "k2", "k8"];

export function WhatIfSweepView({answers}: {answers: WhatIfSweep[]}) {
  const all = answers[0];
  const x = useMemo(() => (all?.values ?? []).map((value, i) => Number.isFinite(Number(value)) ? Number(value) : i), [all]);
  const lines = useMemo<Line[]>(() => [
    ...(all?.curves ?? []).map((curve, i) => ({name: curve.applied.join(" + "), colour: kColours[i % kColours.length] ?? "k8", values: curve.points.map((point) => point.predicted_ms)})),
    {name: "nothing applied", colour: "soft", dash: [6, 4], values: (all?.values ?? []).map(() => all?.baseline_ms ?? 0)},
  ], [all]);
  if (!all) return null;
  const rows = all.curves.flatMap((curve) => curve.points.map((point) => ({name: curve.applied.join(" + "), ...point})));
  const best = rows.reduce((a, b) => b.predicted_ms < a.predicted_ms ? b : a);
  const numeric = all.values.every((value) => Number.isFinite(Number(value)));
  return (
    <>
      <Verdict below={`${all.file}: ${ms(all.baseline_ms)} with nothing applied.`}>Shortest with <em>{best.name}</em> at {all.key} {best.value}: {withRange(best.predicted_ms, best.low_ms, best.high_ms)}.</Verdict>
      <Section title="Curves">
      <Plot title={`Iteration over ${all.key}`} x={x} lines={lines} xLabel={all.key} yLabel="ms" yText={ms} yTicks={tick}
        xText={(value) => `${all.key} ${numeric ? figure(value) : all.values[Math.round(value)] ?? ""}`} xTicks={(value) => numeric ? figure(value) : Number.isInteger(value) ? all.values[value] ?? "" : ""} />
      <Table title="In figures" rows={rows} first={40} columns={[
        {title: "applied", value: (row) => row.name, left: true, wide: true}, {title: all.key, value: (row) => numeric ? Number(row.value) : row.value, show: (row) => row.value},
        {title: "iteration", value: (row) => row.predicted_ms, show: (row) => ms(row.predicted_ms)}, {title: "range", value: (row) => row.high_ms, show: (row) => msRange(row.low_ms, row.high_ms)},
        {title: "GPU busy", value: (row) => row.predicted_gpu_ms, show: (row) => ms(row.predicted_gpu_ms)}]} />
      </Section>
      <Notes title="Assumptions" notes={[...new Set(rows.flatMap((row) => row.assumptions))]} />
    </>
  );
}
