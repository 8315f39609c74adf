// How long it takes from a control of Forecast to its answer on the screen: node tests/latency.mjs PROGRAM [MOVES]. Of each control as
// many moves, a pause behind each as somebody makes who reads. Every batch is new; GPUs and precisions come again, and the server knows
// some of their answers. It tells and judges nothing: how fast a machine is, is its own.
import {readFileSync} from "node:fs";
import {cpus, loadavg} from "node:os";
import {browser, newPage, serve} from "./browser.mjs";

const [program, moves = "60"] = process.argv.slice(2);
const {address, link} = await serve(program).told;
const page = await newPage({own: address});
await page.goto(link);
await page.goto("about:blank");
await page.goto(`${address}/#forecast`);
const idle = () => page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".answer.busy"), undefined, {timeout: 30_000});
await idle();
await page.waitForTimeout(1000);

// Sets a control to a value, and waits in the page itself until a picture shows another verdict.
const moved = (name, value) => page.evaluate(async ([label, to]) => {
  const span = [...document.querySelectorAll("label span")].find((one) => one.textContent === label);
  const input = span.closest("label").querySelector("input, select");
  const verdict = () => document.querySelector("h1")?.textContent ?? "";
  const before = verdict();
  const begin = performance.now();
  input.value = to;
  input.dispatchEvent(new Event(input.tagName === "SELECT" ? "change" : "input", {bubbles: true}));
  while (verdict() === before && performance.now() - begin < 3000) await new Promise((done) => requestAnimationFrame(done));
  return {took: performance.now() - begin, changed: verdict() !== before};
}, [name, value]);

const options = (name) => page.locator("label", {has: page.locator(`span:text-is("${name}")`)}).locator("select").first().evaluate((select) => [...select.options].map((option) => option.value));
const gpus = await options("GPU"), precisions = (await options("Precision")).filter((one) => one !== "");
const count = Number(moves);
const values = {
  Batch: Array.from({length: count}, (_, i) => String(11 + 7 * i)),
  GPU: Array.from({length: count}, (_, i) => gpus[(i * 5 + 1) % gpus.length]),
  Precision: Array.from({length: count}, (_, i) => precisions[(i + 1) % precisions.length]),
};
const cpu = /model name\s*: (.*)/.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? process.arch;
console.log(`${new Date().toISOString().slice(0, 16)}Z, ${cpu}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}`);
console.log("| control | moves | median | 19 of 20 within | most |\n|---|---|---|---|---|");
const all = [];
const tell = (name, times) => {
  times.sort((a, b) => a - b);
  const at = (share) => `${times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(0)} ms`;
  console.log(`| ${name} | ${times.length} | ${at(0.5)} | ${at(0.95)} | ${at(1)} |`);
};
for (const [name, list] of Object.entries(values)) {
  const times = [];
  for (const value of list) {
    const {took, changed} = await moved(name, value);
    if (changed) times.push(took);  // two settings may have one verdict, word for word
    await page.waitForTimeout(150);
  }
  tell(name, times);
  all.push(...times);
}
tell("all", all);
await browser.close();
process.exit(0);
