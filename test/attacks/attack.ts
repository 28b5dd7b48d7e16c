import { assert, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { type AttackStage, openStage, type Store } from "./AttackStage.ts"
import type { HonestReport } from "./HonestReport.ts"

/*
 * How to add an attack: write `test/attacks/<what it attacks>.test.ts` that calls `attack({ name, run, verify })` once or more.
 *
 * The harness starts a Postgres database, gateways and an engine as processes of their own, makes two organizations, and measures a client of the honest one without and with
 * the attack. The test fails if the honest client gets an error, if its p99 with the attack is more than three times that without, if the health endpoints slow down by that
 * much, or if a gateway ends. `verify` adds what the attacker must see and what the database must hold.
 *
 * `run` is the attack. It starts again when it ends, and is interrupted when the measurement is over: close what it opened in finalizers (`Effect.acquireRelease`). It runs in
 * the test's own process, apart from the measuring client. It may send to `stage.address` only, and must be bounded in time and in count.
 */

export interface Evidence {
  readonly quiet: HonestReport
  readonly attacked: HonestReport
  /** How often the attacker got each answer since the attack began. */
  readonly answers: ReadonlyMap<string, number>
}

export interface Attack {
  /** The promise that holds under the attack. */
  readonly name: string
  /** Settings of the gateways, by name. */
  readonly settings?: Readonly<Record<string, string>>
  /** Gateways; 1 if absent. */
  readonly gateways?: number
  /** Length of each measurement; 6 if absent. */
  readonly seconds?: number
  /** What the database must hold before the gateways start. */
  readonly prepare?: (parties: Pick<AttackStage, "attacker" | "honest" | "engineUrl">) => Effect.Effect<void, unknown, Store | Scope.Scope>
  readonly run: (stage: AttackStage) => Effect.Effect<unknown, unknown, Store | Scope.Scope>
  readonly verify?: (evidence: Evidence, stage: AttackStage) => Effect.Effect<void, unknown, Store>
}

/** Milliseconds of a health endpoint's latency that count as none: its few milliseconds are less than a busy machine's noise. */
const floorMillis = 100
/** By how much latencies may grow. */
const factor = 3
/** How often a comparison runs before its latencies count; errors count at once. */
const tries = 3
/** Milliseconds for which an attack is under way before it is measured. */
const leadMillis = 500

/** How much longer than allowed a latency is, if it is. */
const slowdown = (kind: "requests" | "health", { attacked, quiet }: Evidence): string | null => {
  const noise = kind === "health" ? Math.max(floorMillis, attacked.idle.p99) : 0
  const allowed = factor * Math.max(quiet[kind].p99, noise)
  return attacked[kind].p99 <= allowed
    ? null
    : `p99 of ${kind}: ${attacked[kind].p99} ms under attack, ${quiet[kind].p99} ms without, ${Math.round(allowed)} ms allowed`
}

const compare = Effect.fnUntraced(function* (stage: AttackStage, run: Effect.Effect<unknown, unknown, Store | Scope.Scope>, millis: number) {
  const quiet = yield* stage.measure(millis)
  stage.answers.clear()
  const attacking = yield* Effect.forkChild(Effect.forever(Effect.scoped(run)))
  yield* Effect.sleep(leadMillis)
  const attacked = yield* stage.measure(millis).pipe(Effect.raceFirst(Fiber.join(attacking)))
  yield* Fiber.interrupt(attacking)
  return { quiet, attacked, answers: new Map(stage.answers) } satisfies Evidence
})

const line = (name: string, { answers, attacked, quiet }: Evidence) => {
  const figures = (report: HonestReport) =>
    `${report.requests.count} requests p50 ${report.requests.p50} p99 ${report.requests.p99} ms, health p99 ${report.health.p99} ms, idle server p99 ${report.idle.p99} ms`
  return `${name}\n  without: ${figures(quiet)}\n  with: ${figures(attacked)}\n  the attacker got ${JSON.stringify(Object.fromEntries(answers))}\n`
}

/** Registers an attack as a test. */
export const attack = ({ gateways = 1, name, prepare = () => Effect.void, run, seconds = 6, settings = {}, verify = () => Effect.void }: Attack): void => {
  it.live(name, () =>
    Effect.gen(function* () {
      const { stage, store } = yield* openStage(gateways, settings, prepare)
      // The first requests compile the program.
      yield* stage.measure(2_000)
      for (let count = 1; ; count++) {
        const evidence = yield* Effect.provide(compare(stage, run(stage), seconds * 1_000), store)
        process.stdout.write(line(name, evidence))
        assert.deepStrictEqual([evidence.quiet.errors, evidence.attacked.errors], [[], []], "the honest client got errors")
        assert.isFalse(
          stage.gateways.some(({ hasEnded }) => hasEnded()),
          "a gateway ended"
        )
        const slow = [slowdown("requests", evidence), slowdown("health", evidence)].filter((text) => text !== null)
        if (slow.length > 0 && count < tries) continue
        assert.deepStrictEqual(slow, [])
        return yield* Effect.provide(verify(evidence, stage), store)
      }
    }).pipe(Effect.scoped)
  )
}
