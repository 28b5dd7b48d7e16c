import { type TrainedName, trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { type Case, cases } from "./cases.ts"
import { serveSample } from "./serveSample.ts"
import { sampleOf, tableRow } from "./table.ts"
import { type Earlier, trySample } from "./trySample.ts"

// `node test/mutants/matrix.ts [NAME ...]` prints all failing rows of each fault, including those that are not required. `--table` prints the table of faults.md.
const words = process.argv.slice(2)
const say = (line: string) => process.stdout.write(`${line}\n`)

const failing = ({ change, files, mutant }: Omit<Case, "name" | "spoils">, model: TrainedName, earlier: Earlier) =>
  Effect.gen(function* () {
    const served = yield* serveSample({ files: files?.() ?? trainedFiles(model), ...(mutant === undefined ? {} : { mutant }) })
    const parameters = process.env.SEATRIAL_MUTANT_PARAMETERS
    return yield* trySample(served, {
      model,
      ...(change === undefined ? {} : { change }),
      earlier,
      ...(parameters === undefined ? {} : { parameters: Number(parameters) })
    })
  }).pipe(Effect.scoped)

const summary = ({ checks }: { readonly checks: ReadonlyArray<{ readonly name: string; readonly passed: boolean; readonly detail?: string }> }) =>
  checks
    .filter(({ passed }) => !passed)
    .map(({ detail, name }) => `${name} (${detail})`)
    .join(" | ") || "nothing failed"

const matrix = Effect.gen(function* () {
  const { likelihood, report } = yield* failing({}, "tiny-chat", [])
  say(`sound: ${summary(report)}`)
  const earlier = [{ fingerprints: report.fingerprints, loadedChecksum: report.loaded_checksum ?? null, likelihood }]
  for (const model of ["tiny-thinker", "tiny-thinker-always"] as const) say(`sound ${model}: ${summary((yield* failing({}, model, [])).report)}`)
  for (const one of cases.filter(({ name }) => words.length === 0 || words.includes(name))) {
    const result = yield* Effect.result(failing(one, sampleOf(one.name), sampleOf(one.name) === "tiny-chat" ? earlier : []))
    say(`${one.name}: ${result._tag === "Success" ? summary(result.success.report) : result.failure.message}`)
  }
}).pipe(Effect.provide(FetchHttpClient.layer))

if (words[0] === "--table") {
  for (const one of cases) say(tableRow(one))
} else {
  await Effect.runPromise(matrix)
  process.exit(0)
}
