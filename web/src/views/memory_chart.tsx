// Memory over one iteration, by kind, with the peak and the card's limit.
import type {MemorySeries} from "../answers";
import {bytes, byteScale, whole, tick} from "../format";
import {Plot, type Line} from "../ui/plot";

export const kKinds: [string, string][] = [
  ["parameters", "k3"], ["gradients", "k2"], ["optimizer_state", "k5"], ["buffers", "k9"], ["inputs", "k6"], ["workspaces", "k8"],
  ["activations", "k1"], ["temporaries", "k4"],
];

const name = (kind: string) => kind.replace(/_/g, " ");

export function MemoryChart({series, title = "Memory over the iteration"}: {series: MemorySeries; title?: string}) {
  const at = series.columns.at_op ?? [];
  const lines: Line[] = kKinds.flatMap(([kind, colour]) => {
    const values = series.columns[kind];
    return values && values.some((value) => value > 0) ? [{name: name(kind), colour, values, steps: true}] : [];
  });
  const allocated = series.columns.allocated ?? [];
  const most = Math.max(...allocated, 1);
  const limit = series.device_memory - series.context;
  const scale = byteScale(most);
  const peak = at[series.peak] ?? 0;
  const marks = [
    {x: series.forward_from, text: "forward", tone: "soft"}, {x: series.backward_from, text: "backward", tone: "soft"},
    {x: series.update_from, text: "update", tone: "soft"}, {x: peak, y: 1.3, text: `peak ${bytes(allocated[series.peak] ?? 0)}`, tone: "bad"},
  ];
  const near = limit > 0 && most > 0.55 * limit;
  return (
    <Plot title={title} x={at} lines={lines} stacked
      note={`Peak at ${series.peak_op || "no op"}. ${near ? "" : `The GPU has ${bytes(limit)} beside its context: off this chart. `}Drag to zoom, double-click to see all.`}
      marks={near ? [...marks, {y: limit, text: `the GPU's ${bytes(limit)}`, tone: "bad"}] : marks} yMost={near ? limit : 0}
      xLabel="ops in program order" yLabel={scale.unit} xTicks={whole} xText={(x) => x < 0 ? "before the first op" : `op ${whole(Math.floor(x))}`}
      yTicks={(value) => tick(value / scale.divisor)} yText={bytes}
      yIncrements={[1, 2, 5, 10, 20, 50, 100, 200, 500, 0.1, 0.2, 0.5].sort((a, b) => a - b).map((step) => step * scale.divisor)}
      hint={(i) => `together ${bytes(allocated[i] ?? 0)}`} />
  );
}
