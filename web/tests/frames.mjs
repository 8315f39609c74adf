// Frames a second while one moves and zooms: node tests/frames.mjs PROGRAM [TRACE]. A Gantt chart of 10^5 jobs, and the timeline of a
// trace, best one of a gigabyte. It tells and judges nothing: how fast a browser draws is the machine's affair too.
import {browser, newPage, serve} from "./browser.mjs";

const [program, trace] = process.argv.slice(2);
const {address, link} = await serve(program).told;

// A key a frame, zooming in, moving to and fro, and out again.
const played = (canvas) => canvas.evaluate(async (element) => {
  const keys = ["+", "+", "+", "ArrowRight", "ArrowRight", "ArrowLeft", "+", "+", "ArrowRight", "-", "-", "ArrowLeft", "-", "-", "-", "0"];
  const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
  element.focus();
  await next();
  const times = [];
  for (let turn = 0; turn < 10; ++turn) {
    for (const key of keys) {
      element.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
      const begin = performance.now();
      await next();
      times.push(performance.now() - begin);
    }
  }
  times.sort((a, b) => a - b);
  return {frames: times.length, second: (1000 * times.length) / times.reduce((sum, time) => sum + time, 0), p95: times[Math.floor(times.length * 0.95)]};
});

const tell = (what, {frames, second, p95}) => console.log(`${what}: ${second.toFixed(1)} frames a second over ${frames}, 19 of 20 within ${p95.toFixed(1)} ms`);

async function open(place) {
  const page = await newPage({own: address});
  await page.goto(link);
  await page.goto("about:blank");
  await page.goto(`${address}/#${place}`);
  return page;
}

{
  const begin = performance.now();
  const page = await open("cluster?synthetic=jobs%3D100000%2Cgpus%3D1000%2Cseed%3D1&gpus=1000&policies=fifo");
  const chart = page.getByRole("img", {name: /rows/}).first();
  await chart.waitFor({timeout: 300_000});
  console.log(`Gantt chart of 10^5 jobs: drawn after ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  tell("Gantt chart of 10^5 jobs", await played(chart));
  await page.context().close();
}
if (trace) {
  const page = await open("trace");
  await page.getByLabel("Choose traces", {exact: true}).setInputFiles(trace);
  const sent = performance.now();
  await page.waitForResponse((response) => response.url().endsWith("/api/v1/uploads") || response.url().includes("/uploads?"), {timeout: 300_000});
  const there = performance.now();
  await page.locator(".facts").first().waitFor({timeout: 300_000});
  const overview = performance.now();
  const chart = page.getByRole("img", {name: /Timeline/});
  await chart.waitFor({timeout: 300_000});
  const seconds = (from, to) => ((to - from) / 1000).toFixed(1);
  console.log(`trace: uploaded in ${seconds(sent, there)} s, overview ${seconds(there, overview)} s after that, timeline ${seconds(there, performance.now())} s after that`);
  tell("timeline of the trace", await played(chart));
}
await browser.close();
process.exit(0);
