// What all browser tests share: Debian's Chromium without a window, pages that must stay silent, axe, and a count of what failed.
import {execFileSync, spawn} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";

const require = createRequire(import.meta.url);
export const source = new URL("../..", import.meta.url).pathname;
export const folder = mkdtempSync(join(tmpdir(), "forerun-page-"));

export const kSkipped = 77;  // ctest's word for a test that was not run

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(kSkipped);
}

export function chromiumPath() {
  for (const path of [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser"]) if (path && existsSync(path)) return path;
  return skip("there is no Chromium; install Debian's package chromium");
}

function packageNamed(name) {
  try {
    return require(name);
  } catch {
    return skip(`the package ${name} is not there; run \`npm ci\` in web/`);
  }
}

const {chromium} = packageNamed("playwright-core");
const axeSource = readFileSync(packageNamed("axe-core/package.json") && require.resolve("axe-core/axe.min.js"), "utf8");

let failures = 0;
let checks = 0;

export function check(holds, what, found = "") {
  ++checks;
  if (holds) return;
  ++failures;
  console.log(`FAILED: ${what}${found === "" ? "" : `: ${typeof found === "string" ? found : JSON.stringify(found)}`}`);
}

export function finish() {
  console.log(`${checks} checks, ${failures} failed`);
  process.exit(failures > 0 ? 1 : 0);
}

export const browser = await chromium.launch({executablePath: chromiumPath(), args: ["--no-sandbox"]});

export const kSizes = [{width: 1280, height: 900}, {width: 375, height: 800}];

// A page whose errors, refused scripts and requests elsewhere are failures.
export async function newPage({size = kSizes[0], scheme = "light", own = "file:"} = {}) {
  const context = await browser.newContext({viewport: size, colorScheme: scheme, acceptDownloads: true});
  const page = await context.newPage();
  page.on("pageerror", (error) => check(false, "a page has an error", error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) check(false, "the console has an error", message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    check(url.startsWith(own) || url.startsWith("data:") || url.startsWith("blob:"), "a request goes elsewhere", url);
  });
  return page;
}

export async function axe(page, what) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => (await window.axe.run(document)).violations.map((one) => `${one.id}: ${one.nodes[0]?.html.slice(0, 160)} (${one.nodes.length})`));
  check(found.length === 0, `${what}: axe finds nothing`, found.join("; "));
}

// Nothing hangs over the edge, and there is a sentence on top.
export async function layout(page, what) {
  const {over, title} = await page.evaluate(() => ({over: document.documentElement.scrollWidth - innerWidth, title: document.querySelector("h1")?.textContent ?? ""}));
  check(over <= 0, `${what}: fits the width`, String(over));
  check(title.length > 5 && !/undefined|NaN|null/.test(title), `${what}: has a verdict`, title);
  const text = await page.evaluate(() => document.querySelector("main")?.textContent ?? "");
  check(!/\bundefined\b|\bNaN\b/.test(text), `${what}: every figure is one`, (/.{30}(undefined|NaN).{30}/.exec(text) ?? [""])[0]);
}

export async function downloaded(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return {name: download.suggestedFilename(), bytes: readFileSync(await download.path())};
}

export function forerun(program, ...words) {
  try {
    return execFileSync(program, words, {cwd: source, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"]});
  } catch (error) {
    if (error.status === 3) return error.stdout;  // does not fit: an answer too
    throw new Error(`forerun ${words.join(" ")}: ${error.stderr}`);
  }
}

// `forerun serve` on a port of its own; its first line is JSON.
export function serve(program) {
  const child = spawn(program, ["serve", "--port", "0", "--store", join(folder, "store.db"), "--json"], {cwd: source, stdio: ["ignore", "pipe", "ignore"]});
  const told = new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (piece) => {
      text += piece;
      if (text.includes("\n")) resolve(JSON.parse(text.split("\n")[0]));
    });
    child.on("exit", (code) => reject(new Error(`forerun serve ended with ${code}`)));
  });
  process.on("exit", () => child.kill("SIGTERM"));
  return {told};
}
