// Horizontal bars with a label each, and a line where the value has a range.
import {Figure, useWidth} from "./figure";

export interface Bar {
  name: string;
  value: number;
  low?: number;
  high?: number;
  tone?: "accent" | "warn" | "faint" | "bad";
  text: string;  // what stands behind the bar
  hint?: string;
  parts?: {value: number; colour: string}[];  // in place of one colour
}

interface BarsProps {
  title: string;
  note?: string;
  unit: string;  // of the values, for CSV
  bars: Bar[];
  most?: number;
}

const kRow = 28;
const kBar = 14;

let ruler: CanvasRenderingContext2D | null = null;

// How wide a text is in the charts' letters.
function textWidth(text: string): number {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * 7;
  ruler.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

// The middle of a long name says least: of a path the end counts, of an op the beginning.
function shortened(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  for (let letters = text.length - 1; letters > 4; --letters) {
    const tail = Math.floor(letters * 0.6);
    const cut = `${text.slice(0, letters - tail)}\u2026${text.slice(text.length - tail)}`;
    if (textWidth(cut) <= most) return cut;
  }
  return text.slice(0, 3);
}

export function Bars({title, note, unit, bars, most}: BarsProps) {
  const [ref, width] = useWidth();
  const labels = Math.min(Math.max(...bars.map((bar) => textWidth(bar.name)), 30) + 12, width * 0.4);
  const texts = Math.min(Math.max(...bars.map((bar) => textWidth(bar.text)), 30) + 12, width * 0.45);
  const plot = Math.max(width - labels - texts, 20);
  const end = most ?? Math.max(...bars.map((bar) => Math.max(bar.value, bar.high ?? 0)), 1e-12);
  const x = (value: number) => Math.max(0, Math.min(1, value / end)) * plot;
  const ranged = bars.some((bar) => bar.high !== undefined);
  const header = ["name", unit, ...(ranged ? ["low", "high"] : [])];
  const rows = () => bars.map((bar) => [bar.name, bar.value, ...(ranged ? [bar.low, bar.high] : [])]);
  const height = bars.length * kRow + 4;
  return (
    <Figure title={title} note={note} csv={{header, rows}}>
      <div ref={ref}>
        {width > 0 && (
          <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
            aria-label={`${title}: ${bars.slice(0, 12).map((bar) => `${bar.name} ${bar.text}`).join("; ")}`}>
            {bars.map((bar, i) => {
              const middle = i * kRow + kRow / 2;
              let from = labels;
              return (
                <g key={i}>
                  <title>{bar.hint ?? `${bar.name}: ${bar.text}`}</title>
                  <rect class="row" x="0" y={i * kRow} width={width} height={kRow} />
                  <text class="label" x={labels - 10} y={middle + 4} text-anchor="end">{shortened(bar.name, labels - 10)}</text>
                  {bar.parts ? bar.parts.map((part, k) => {
                    const start = from;
                    from += x(part.value);
                    return <rect key={k} x={start} y={middle - kBar / 2} width={x(part.value)} height={kBar} fill={part.colour} />;
                  }) : <rect class={`bar ${bar.tone ?? "accent"}`} x={labels} y={middle - kBar / 2} width={Math.max(x(bar.value), 1)} height={kBar} rx="2" />}
                  {bar.low !== undefined && bar.high !== undefined && (
                    <path class="range" d={`M${labels + x(bar.low)} ${middle}H${labels + x(bar.high)}M${labels + x(bar.low)} ${middle - 4}v8M${labels + x(bar.high)} ${middle - 4}v8`} />
                  )}
                  <text class="value" x={labels + Math.max(x(Math.max(bar.value, bar.high ?? 0)), 1) + 8} y={middle + 4}>{bar.text}</text>
                </g>
              );
            })}
          </svg>
        )}
      </div>
    </Figure>
  );
}
