import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { recordSuite, secondsByCheck } from "./suiteSeconds.ts"

// `node test/mutants/suiteTime.ts TPOT_MS PREFILL_TOKENS_PER_S [CONTEXT]` prints the calculated time of the suite on an engine of that speed, check by check.
const [tokenMillis = 25, promptTokensPerSecond = 8_000, context = 131_072] = process.argv.slice(2).map(Number)

const program = Effect.gen(function* () {
  const { report, requests } = yield* recordSuite()
  const say = (line: string) => process.stdout.write(`${line}\n`)
  let total = 0
  for (const [name, seconds] of secondsByCheck(requests, { tokenMillis, promptTokensPerSecond, context })) {
    const own = requests.filter(({ check }) => check === name)
    const tokens = own.reduce((sum, { answerTokens }) => sum + answerTokens, 0)
    total += seconds
    say(`${seconds.toFixed(1).padStart(7)} s  ${name}${own.length === 0 ? ", at most" : `: ${own.length} requests, ${Math.round(tokens)} generated tokens`}`)
  }
  say(`${total.toFixed(1).padStart(7)} s  in all`)
  for (const { detail, name, passed } of report.checks) if (!passed) say(`failed: ${name}: ${detail ?? ""}`)
}).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

await Effect.runPromise(program)
process.exit(0)
