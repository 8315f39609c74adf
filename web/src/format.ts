// Figures as people read them: the one place that rounds, groups and puts units.

const grouping = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});

// Three digits that count, and no exponent: 0.0123, 1.23, 12.3, 123, 1,234.
export function figure(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "-";
  if (size >= 999.5) return grouping.format(value);
  if (Number.isInteger(value)) return String(value);
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
  const text = value.toFixed(digits);
  return size < 1e-6 ? "0" : text;
}

// Of an axis: 0.5, 20, 1,500, with no digits that say nothing.
export const tick = (value: number): string => {
  const text = figure(value);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
};

export const whole = (value: number): string => grouping.format(Math.round(value));

// 25.6 M, 1.24 B.
export function short(value: number): string {
  const size = Math.abs(value);
  const scales: [number, string][] = [[1e12, " T"], [1e9, " B"], [1e6, " M"], [1e3, " k"]];
  for (const [scale, letter] of scales) if (size >= scale) return figure(value / scale) + letter;
  return figure(value);
}

interface Scale {
  divisor: number;
  unit: string;
}

export function timeScale(ms: number): Scale {
  const size = Math.abs(ms);
  if (size >= 3.6e6) return {divisor: 3.6e6, unit: "h"};
  if (size >= 60e3) return {divisor: 60e3, unit: "min"};
  if (size >= 1000) return {divisor: 1000, unit: "s"};
  if (size >= 0.1 || size === 0) return {divisor: 1, unit: "ms"};
  return {divisor: 1e-3, unit: "\u00b5s"};
}

export function byteScale(bytes: number): Scale {
  const size = Math.abs(bytes);
  if (size >= 2 ** 40) return {divisor: 2 ** 40, unit: "TiB"};
  if (size >= 2 ** 30) return {divisor: 2 ** 30, unit: "GiB"};
  if (size >= 2 ** 20 || size === 0) return {divisor: 2 ** 20, unit: "MiB"};
  if (size >= 2 ** 10) return {divisor: 2 ** 10, unit: "KiB"};
  return {divisor: 1, unit: "B"};
}

const scaled = (value: number, scale: Scale): string => `${figure(value / scale.divisor)} ${scale.unit}`;

export const ms = (value: number): string => scaled(value, timeScale(value));
export const us = (value: number): string => ms(value / 1000);
export const bytes = (value: number): string => scaled(value, byteScale(value));
// 32.6 %, 5.3 %, 0.04 %, 100 %.
export function percent(share: number): string {
  const value = share * 100;
  if (!Number.isFinite(value)) return "-";
  const digits = Math.abs(value) >= 99.95 || value === 0 ? 0 : Math.abs(value) >= 0.095 ? 1 : 2;
  return `${value.toFixed(digits)} %`;
}

export const times = (factor: number): string => `${figure(factor)}\u00d7`;

export function seconds(value: number): string {
  return Math.abs(value) >= 172800 ? `${figure(value / 86400)} d` : ms(value * 1000);
}

export function hours(value: number): string {
  return Math.abs(value) >= 48 ? `${figure(value / 24)} days` : value >= 1 ? `${figure(value)} h` : `${figure(value * 60)} min`;
}

// Seconds of an axis, whose steps are those of a clock: 0, 30 s, 15 min, 2 h, 3 d.
export function clock(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 86400) return `${tick(value / 86400)} d`;
  if (size >= 3600) return `${tick(value / 3600)} h`;
  return size >= 60 ? `${tick(value / 60)} min` : size >= 1 ? `${tick(value)} s` : `${tick(value * 1000)} ms`;
}

export const kClockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000];

// "110 to 139 ms": both ends in the unit of the upper one.
function rangeOf(low: number, high: number, scale: Scale): string {
  const from = figure(low / scale.divisor);
  const to = figure(high / scale.divisor);
  return from === to ? `${to} ${scale.unit}` : `${from} to ${to} ${scale.unit}`;
}

export const msRange = (low: number, high: number): string => rangeOf(low, high, timeScale(high));
export const bytesRange = (low: number, high: number): string => rangeOf(low, high, byteScale(high));

// "123 ms, 110 to 139"
export function withRange(value: number, low: number, high: number): string {
  const scale = timeScale(value);
  return `${scaled(value, scale)}, ${figure(low / scale.divisor)} to ${figure(high / scale.divisor)}`;
}

// iter_ms: "iteration, ms" is the table's business; this makes words of a field's name.
export function words(name: string): string {
  const text = name.replace(/_/g, " ").trim();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function plural(count: number, one: string, many = one + "s"): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

export function day(made: string): string {
  const match = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})/.exec(made);
  return match ? `${match[1]}, ${match[2]} UTC` : made;
}

// "an NVIDIA H200", "a T4"
export const named = (thing: string): string => `${/^([AEFHILMNORSX][A-Z0-9]|[AEIOaeio])/.test(thing) ? "an" : "a"} ${thing}`;
