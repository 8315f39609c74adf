// Many configurations: the fastest that fits, a curve along an axis of numbers, and all of them.
import {useMemo} from "preact/hooks";
import type {Prediction} from "../answers";
import {bytes, figure, ms, msRange, plural, whole, tick} from "../format";
import {Notes, Section, Verdict} from "../ui/parts";
import {Plot, type Line} from "../ui/plot";
import {Table, type Column} from "../ui/table";
import {rate, verdictText, verdictTone} from "./predict";

export type Case = Prediction & {sweep: Record<string, string>; error?: string};

const kColours = ["k1", "k4", "k6", "k5", "k7", "k9", "k3", "k2", "k8"];
const kMostLines = 9;

const label = (values: [string, string][]): string => values.map(([name, value]) => `${name} ${value}`).join(", ");

// The first axis whose every value is a number of its own; the others name the curves.
function axisOf(cases: Case[]): string | undefined {
  const names = Object.keys(cases[0]?.sweep ?? {});
  return names.find((name) => {
    const values = new Set(cases.map((one) => one.sweep[name]));
    return values.size > 2 && [...values].every((value) => value !== undefined && value !== "" && Number.isFinite(Number(value)));
  });
}

function Curves({cases, axis, title, unit, of, text}: {cases: Case[]; axis: string; title: string; unit: string; of: (one: Case) => number; text: (value: number) => string}) {
  const x = useMemo(() => [...new Set(cases.map((one) => Number(one.sweep[axis])))].sort((a, b) => a - b), [cases, axis]);
  const lines = useMemo<Line[]>(() => {
    const groups = new Map<string, Map<number, number>>();
    for (const one of cases) {
      const key = label(Object.entries(one.sweep).filter(([name]) => name !== axis)) || "all";
      const group = groups.get(key) ?? new Map<number, number>();
      group.set(Number(one.sweep[axis]), of(one));
      groups.set(key, group);
    }
    return [...groups].slice(0, kMostLines).map(([name, values], i) => ({name, colour: kColours[i] ?? "k8", values: x.map((value) => values.get(value) ?? null)}));
  }, [cases, axis, x]);
  const groups = new Set(cases.map((one) => label(Object.entries(one.sweep).filter(([name]) => name !== axis)))).size;
  return <Plot title={title} note={groups > kMostLines ? `The first ${kMostLines} of ${groups} curves; the table has all.` : undefined} x={x} lines={lines} xLabel={axis} yLabel={unit} xText={(value) => `${axis} ${figure(value)}`} xTicks={tick} yText={text} yTicks={(value) => tick(unit === "GiB" ? value / 2 ** 30 : value)} yIncrements={unit === "GiB" ? [1, 2, 5, 10, 20, 50, 100, 200].map((step) => step * 2 ** 30) : undefined} />;
}

export function SweepView({answers}: {answers: Case[]}) {
  const cases = answers.filter((one) => !one.error);
  const failed = answers.filter((one) => one.error);
  const names = Object.keys(answers[0]?.sweep ?? {});
  const fitting = cases.filter((one) => one.verdict === "fits");
  const best = fitting[0] && fitting.reduce((a, b) => b.samples_per_second > a.samples_per_second ? b : a);
  const axis = axisOf(cases);
  const columns: Column<Case>[] = [
    ...names.map((name): Column<Case> => ({title: name, value: (one) => Number.isFinite(Number(one.sweep[name])) ? Number(one.sweep[name]) : one.sweep[name], show: (one) => one.sweep[name] ?? "", left: !cases.every((one) => Number.isFinite(Number(one.sweep[name])))})),
    {title: "iteration", value: (one) => one.iter_ms, show: (one) => ms(one.iter_ms)},
    {title: "range", value: (one) => one.iter_high_ms, show: (one) => msRange(one.iter_low_ms, one.iter_high_ms)},
    {title: "throughput", value: (one) => one.samples_per_second, show: rate},
    {title: "limited by", value: (one) => one.bound, left: true},
    {title: "memory", value: (one) => one.peak_reserved, show: (one) => bytes(one.peak_reserved)},
    {title: "verdict", value: (one) => one.verdict, left: true, show: (one) => <span class={`tag ${verdictTone(one.verdict)}`}>{verdictText[one.verdict]}</span>},
  ];
  return (
    <>
      {best ? (
        <Verdict tone="good" below={<>{label(Object.entries(best.sweep))}: {ms(best.iter_ms)} an iteration, {msRange(best.iter_low_ms, best.iter_high_ms)} in 8 of 10 such runs.</>}>
          Of {plural(answers.length, "configuration")} the fastest that fits makes <em>{rate(best)}</em>.
        </Verdict>
      ) : <Verdict tone="bad">None of {plural(answers.length, "configuration")} surely fits.</Verdict>}
      <Section title="Configurations">
        {axis && <Curves cases={cases} axis={axis} title="Throughput" unit="samples/s" of={(one) => one.samples_per_second} text={(value) => `${figure(value)} samples/s`} />}
        {axis && <Curves cases={cases} axis={axis} title="Memory reserved" unit="GiB" of={(one) => one.peak_reserved} text={bytes} />}
        <Table title="All of them" rows={cases} columns={columns} first={30} chosen={(one) => one === best} />
      </Section>
      <Notes title={`Could not be predicted: ${whole(failed.length)}`} notes={failed.slice(0, 200).map((one) => `${label(Object.entries(one.sweep))}: ${one.error}`)} />
    </>
  );
}
