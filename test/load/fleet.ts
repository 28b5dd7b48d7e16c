import { Config, Console, Effect, Exit, Scope } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { show, table } from "./figures.ts"
import { decisionTime, steps } from "./fleet/decisionTime.ts"
import { prefixHits } from "./fleet/prefixHits.ts"
import { throughput } from "./fleet/throughput.ts"
import type { Lab } from "./Lab.ts"
import { openOperatorLab, until } from "./operator/OperatorLab.ts"
import { measureStart, quietWrites } from "./operator/startCost.ts"
import { words } from "./operator/writes.ts"
import { memoryMegabytes } from "./Program.ts"

/** Engines of each model. */
const engines = 4
const quietSeconds = 60

/**
 * Kubernetes' controllers except two, whose time for each change of a pod grows with the number of pods or budgets in the namespace: with 9,000 engines,
 * they used more than half a core. The budgets' status and the protection of the claim are not measured here.
 */
const controllers = "*,-disruption-controller,-persistentvolumeclaim-protection-controller"

/** The operator with a fleet: how fast it follows a load, and what many models with several engines each cost it. */
const operatorPart = Effect.fnUntraced(function* (lab: Lab) {
  const models = yield* Config.Int("BENCH_FLEET_MODELS").pipe(Config.withDefault(5_000))
  const { sql } = lab
  const operatorLab = yield* openOperatorLab(lab, engines * (models + steps) + 64, engines, controllers)
  const { cluster, create, ended, reachEndpoints, startOperator } = operatorLab
  const life = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(life, Exit.void))
  const first = yield* Scope.provide(startOperator(), life)
  yield* until("the operator has reported its host class", sql`SELECT name FROM host_classes`, (rows) => rows.length > 0, 100)
  const decided = yield* decisionTime(lab, operatorLab)
  yield* Console.log(`from a step in load to the decision: ${show(decided)} ms`)

  yield* Effect.forkScoped(reachEndpoints)
  yield* sql`ALTER TABLE models ALTER COLUMN replicas SET DEFAULT ${sql.literal(String(engines))}`
  const begun = performance.now()
  const numbers = Array.from({ length: models }, (_, index) => steps + index)
  const serving = sql<{ readonly engines: number }>`
    SELECT count(*)::int AS engines FROM endpoints e JOIN models m ON m.active_revision_id = e.revision_id WHERE m.replicas = ${engines} AND e.reachable_at IS NOT NULL`
  const bringUp = Effect.gen(function* () {
    yield* Effect.forEach(numbers, create, { concurrency: 8, discard: true })
    yield* until("all are activated", ended, (phases) => phases.get("activated") === models + steps, 500, 120)
    yield* until("all engines serve", serving, ([row]) => row?.engines === engines * models, 500, 120)
  })
  yield* Effect.raceFirst(bringUp, first.died)
  const seconds = (performance.now() - begun) / 1_000
  const peak = (yield* memoryMegabytes(first.pid, "VmHWM")) ?? Number.NaN
  yield* Console.log(`${models} models with ${engines} engines each after ${seconds.toFixed(0)} s; ${peak.toFixed(0)} MB at most`)
  const quiet = yield* Effect.raceFirst(quietWrites(lab, cluster, quietSeconds), first.died)
  yield* Scope.close(life, Exit.void)
  const started = yield* measureStart(cluster, startOperator(), models + steps)

  const rows = [
    [`from the first request of a step in load to the decision, ms (${steps} steps)`, "5,000", show(decided)],
    ["from the start of the process until all watches are synced, s", "15", started.syncedSeconds.toFixed(1)],
    ["until every model has been looked at, s", "", started.passSeconds.toFixed(1)],
    ["resident after a start, MB", "700", started.resident.toFixed(0)],
    ["resident at most until then, MB", "700", peak.toFixed(0)],
    [`writes to Kubernetes in ${quietSeconds} quiet seconds, of whomever`, "leases only", words(quiet.writes)],
    [`rows written in ${quietSeconds} quiet seconds`, "none", words(quiet.rows)]
  ]
  return `${models.toLocaleString("en-US")} models with ${engines} engines each on the control plane of the benchmark \`operator\`, where one stand-in answers for all engines, without
the controllers for disruption budgets and for the protection of claims. It took ${seconds.toFixed(0)} s until all of them served,
${((engines * models) / seconds).toFixed(1)} engines a second. Before that, ${steps} models with one engine, whose number the autoscaler sets, got a step of load through a gateway one after the other, each a
tenth of a second later in the second between two readings of the load. Right before the start, one pod is changed, so that the API server lists pods from its
cache. "All watches" leaves out the \`ModelDeployment\`s of namespaces without an organization: their list comes last, and no pass waits for it.

${table(["", "target", "measured"], rows)}`
})

export const fleet: Benchmark = {
  name: "fleet",
  title: "Models with several engines",
  measure: Effect.fnUntraced(function* ({ own }) {
    const parts: Array<string> = []
    for (const part of [throughput, prefixHits, operatorPart]) {
      const text = yield* Effect.scoped(Effect.flatMap(own, part))
      yield* Console.log(`${text}\n`)
      parts.push(text)
    }
    return parts.join("\n\n")
  })
}
