import { execFileSync } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { cpus, loadavg, totalmem } from "node:os"
import { join } from "node:path"
import { NodeRuntime } from "@effect/platform-node"
import { Clock, Console, Effect } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { createDeployment } from "./createDeployment.ts"
import { decisionRecords } from "./decisionRecords.ts"
import { download } from "./download.ts"
import { filterRequests } from "./filterRequests.ts"
import { measuredStarts } from "./fit.ts"
import { fleet } from "./fleet.ts"
import { gatewayLatency } from "./gatewayLatency.ts"
import { honesty } from "./honesty.ts"
import { openLabs } from "./Lab.ts"
import { listRequests } from "./listRequests.ts"
import { memory } from "./memory.ts"
import { operatorScale } from "./operatorScale.ts"
import { BenchError } from "./Program.ts"
import { preview } from "./preview.ts"
import { readDeployment } from "./readDeployment.ts"
import { readRequest } from "./readRequest.ts"
import { wall } from "./wall.ts"

const benchmarks: ReadonlyArray<Benchmark> = [
  readDeployment,
  readRequest,
  listRequests,
  filterRequests,
  createDeployment,
  memory,
  gatewayLatency,
  operatorScale,
  decisionRecords,
  fleet,
  measuredStarts,
  honesty,
  preview,
  download,
  wall
]
const document = join(import.meta.dirname, "../../docs/reference/benchmarks.md")

const introduction = `# Benchmarks

This page shows how fast Seatrial is. \`npm run bench\` measures and writes it; \`npm run bench -- NAME\` does one of ${benchmarks.map(({ name }) => `\`${name}\``).join(", ")}. Absolute figures are those of one
machine on one day. Only the ratios carry over. Each is to a baseline that is measured in the same run: the programs take turns, and a ratio is
computed within a round. A figure is the median of the rounds, with the lowest and the highest in brackets. Load generator, baselines and programs are separate
processes on one machine and share its cores. Processor time is that of the measured process alone.
`

/** The name of the section whose figures no benchmark of this list measures. It is kept. */
const measuredByHand = "by hand"

const marks = (name: string) => ({ begin: `<!-- ${name} -->`, end: `<!-- end of ${name} -->` })

/** The section of a page between the markers of a benchmark. */
const partOf = (page: string, name: string): string | undefined => {
  const { begin, end } = marks(name)
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  return from === -1 || to === -1 ? undefined : page.slice(from, to + end.length)
}

const machine = () => {
  const cores = cpus()
  return `${cores.length} × ${cores[0]?.model.trim() ?? "unknown processor"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}`
}

const commit = () => {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
  } catch {
    return "unknown"
  }
}

const main = Effect.gen(function* () {
  const wanted = process.argv.slice(2)
  const unknown = wanted.find((name) => !benchmarks.some((benchmark) => benchmark.name === name))
  if (unknown !== undefined) {
    return yield* new BenchError({ message: `There is no benchmark ${unknown}; there are ${benchmarks.map(({ name }) => name).join(", ")}.` })
  }
  const chosen = benchmarks.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
  // Other load on the machine distorts all figures, and also the ratios if a program waits for a core.
  const load = (loadavg()[0] ?? 0).toFixed(1)
  yield* Console.log("Starting Postgres…")
  const labs = yield* openLabs
  const date = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10)
  const command = `npm run bench${wanted.length === 0 ? "" : ` -- ${wanted.join(" ")}`}`
  const measured = `Measured ${date} with \`${command}\` at commit ${commit()}: ${machine()}, Node ${process.versions.node}, Postgres ${labs.postgresVersion}; load average before ${load}.`
  for (const { measure, name, title } of chosen) {
    yield* Console.log(`\n${title} (${name})…`)
    const text = yield* Effect.scoped(measure(labs))
    yield* Console.log(text)
    yield* Effect.promise(async () => {
      const page = await readFile(document, "utf8").catch(() => "")
      const { begin, end } = marks(name)
      const fresh = `${begin}\n## ${title}\n\n${text}\n\n${measured}\n${end}`
      const parts = [...benchmarks.map((benchmark) => (benchmark.name === name ? fresh : partOf(page, benchmark.name))), partOf(page, measuredByHand)].filter(
        (part) => part !== undefined
      )
      await writeFile(document, `${[introduction, ...parts].join("\n")}\n`)
    })
  }
  yield* Console.log(`\nWritten to docs/reference/benchmarks.md.`)
}).pipe(
  Effect.scoped,
  Effect.tapError((error) => Console.error(error instanceof BenchError ? error.message : String(error)))
)

NodeRuntime.runMain(main, { disableErrorReporting: true })
