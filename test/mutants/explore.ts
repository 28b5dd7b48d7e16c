import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { mutants } from "../../packages/engines/reference/src/mutants/index.ts"
import { fileMutants, float32Files } from "./fileMutants.ts"
import { serveSample } from "./serveSample.ts"
import { trySample } from "./trySample.ts"

const wanted = process.env.ONLY?.split(",") ?? []
const parameters = process.env.PARAMS === undefined ? undefined : Number(process.env.PARAMS)
const go = (name: string, what: Parameters<typeof serveSample>[0], earlier: Parameters<typeof trySample>[1]) =>
  Effect.gen(function* () {
    const t = performance.now()
    const found = yield* Effect.flatMap(serveSample(what), (served) => trySample(served, earlier, parameters))
    const failed = found.report.checks.filter(({ passed }) => !passed)
    process.stdout.write(`${name} [${((performance.now() - t) / 1000).toFixed(0)}s] ${failed.map((c) => `${c.name} (${c.detail})`).join(" | ") || "SURVIVES"}\n`)
    if (name === "sound") for (const c of found.report.checks) process.stdout.write(`   ${c.passed ? "ok" : "FAIL"} ${c.name}: ${c.detail}\n`)
    return found
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer), Effect.catchCause((cause) => Effect.sync(() => { process.stdout.write(`${name} ERROR ${String(cause).slice(0, 300)}\n`); return null })))

const all = Effect.gen(function* () {
  const sound = yield* go("sound", {}, [])
  const earlier = sound === null ? [] : [{ fingerprints: sound.report.fingerprints, likelihood: sound.likelihood }]
  if (wanted.length === 0 || wanted.includes("f32")) yield* go("float32", { files: float32Files() }, earlier)
  for (const name of mutants.keys()) if (wanted.length === 0 || wanted.includes(name)) yield* go(name, { mutant: name }, earlier)
  for (const [name, { files }] of Object.entries(fileMutants)) if (wanted.length === 0 || wanted.includes(name)) yield* go(name, { files: files() }, earlier)
})
await Effect.runPromise(all)
process.exit(0)
