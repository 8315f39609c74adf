// Every op of an iteration, as a table, and the modules of the model by their time.
import {useMemo, useState} from "preact/hooks";
import type {OpSeries} from "../answers";
import {bytes, percent, short, us} from "../format";
import {Bars} from "../ui/bars";
import {Table, type Column} from "../ui/table";

interface Row {
  op: string; phase: string; module: string; gpu_us: number; kernels: number; bound: string; measured: boolean; flops: number; bytes: number;
}

const kColumns: Column<Row>[] = [
  {title: "op", value: (row) => row.op, left: true},
  {title: "module", value: (row) => row.module, left: true, wide: true},
  {title: "phase", value: (row) => row.phase, left: true},
  {title: "time", value: (row) => row.gpu_us, show: (row) => us(row.gpu_us)},
  {title: "kernels", value: (row) => row.kernels},
  {title: "FLOPs", value: (row) => row.flops, show: (row) => short(row.flops)},
  {title: "bytes", value: (row) => row.bytes, show: (row) => bytes(row.bytes)},
  {title: "limited by", value: (row) => row.bound, left: true},
  {title: "measured", value: (row) => row.measured ? "yes" : "no", left: true},
];

// Time by module, down to `depth` parts of its path.
function byModule(rows: Row[], depth: number): [string, number][] {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const name = row.module.split(".").slice(0, depth).join(".") || "(outside any module)";
    sums.set(name, (sums.get(name) ?? 0) + row.gpu_us);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

export function OpViews({ops}: {ops: OpSeries}) {
  const [depth, setDepth] = useState(1);
  const rows = useMemo<Row[]>(() => {
    const c = ops.columns;
    return c.op.map((op, i) => ({
      op, phase: c.phase[i] ?? "", module: c.module[i] ?? "", gpu_us: c.gpu_us[i] ?? 0, kernels: c.kernels[i] ?? 0,
      bound: c.bound[i] ?? "", measured: c.measured[i] ?? false, flops: c.flops[i] ?? 0, bytes: c.bytes[i] ?? 0,
    }));
  }, [ops]);
  const deepest = useMemo(() => Math.min(8, Math.max(1, ...rows.map((row) => row.module.split(".").length))), [rows]);
  const modules = useMemo(() => byModule(rows, depth), [rows, depth]);
  const sum = modules.reduce((total, [, time]) => total + time, 0);
  const shown = modules.slice(0, 16);
  const rest = sum - shown.reduce((total, [, time]) => total + time, 0);
  const bars = shown.map(([name, time]) => ({name, value: time, text: `${us(time)}, ${percent(time / sum)}`}));
  if (rest > 0) bars.push({name: `${modules.length - shown.length} others`, value: rest, text: `${us(rest)}, ${percent(rest / sum)}`});
  return (
    <>
      <Bars title="Modules" note={`GPU time of forward and backward pass, down to ${depth === 1 ? "the first level" : `level ${depth}`} of names`} unit="us" bars={bars} />
      {deepest > 1 && (
        <label class="level">Levels of names <input type="range" min="1" max={deepest} value={depth} onInput={(event) => setDepth(Number(event.currentTarget.value))} /> {depth}</label>
      )}
      <Table title="Ops in program order" columns={kColumns} rows={rows} />
    </>
  );
}
