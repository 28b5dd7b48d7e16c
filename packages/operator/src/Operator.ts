import { hostname } from "node:os"
import { LeaseElection } from "@seatrial/kube"
import { Decisions, OperatorTerm, OperatorTerms, Sentinels, UnsentAlarms } from "@seatrial/store"
import { Cause, Duration, Effect, Layer, Option, Schedule } from "effect"
import { FetchHttpClient } from "effect/http"
import { control } from "./controller.ts"
import { OperatorSettings } from "./OperatorSettings.ts"
import { type StartWork, startWork } from "./work/startWork.ts"

/**
 * Leads, or waits as a standby. The controllers run only while this operator holds the lease. Postgres refuses their
 * writes once another operator has begun its term.
 */
const operate = Effect.fnUntraced(function* (settings: OperatorSettings, start: (settings: OperatorSettings) => StartWork) {
  const seconds = settings.leaseSeconds
  const terms = yield* OperatorTerms
  /** Fails if another operator writes to Postgres although this one holds the lease. */
  const untilReplaced = (term: number) =>
    Effect.gen(function* () {
      while (true) {
        yield* Effect.sleep(Duration.seconds(seconds))
        const current = yield* Effect.catchDefect(terms.current, () => Effect.succeedNone)
        if (Option.isSome(current) && current.value !== term)
          return yield* Effect.die(new Error(`another operator began term ${current.value} on the same Postgres`))
      }
    })
  const lead = Effect.gen(function* () {
    // Begin the term before anything is read: pending writes of an earlier leader are then visible or refused.
    const term = yield* terms.begin
    yield* Effect.raceFirst(control(settings, start(settings)), untilReplaced(term)).pipe(Effect.scoped, Effect.provideService(OperatorTerm, term))
  }).pipe(
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("the controllers stopped and start again", Cause.pretty(cause))
    ),
    Effect.sandbox,
    Effect.retry(Schedule.spaced("5 seconds")),
    Effect.catch((cause) => Effect.failCause(cause))
  )
  yield* LeaseElection.run(
    {
      name: "seatrial-operator",
      namespace: settings.namespace,
      identity: `${hostname()}_${crypto.randomUUID()}`,
      leaseDuration: Duration.seconds(seconds),
      renewDeadline: Duration.seconds((seconds * 2) / 3),
      retryPeriod: Duration.seconds(seconds / 7.5)
    },
    lead
  )
})

const layerWith = (start: (settings: OperatorSettings) => StartWork) =>
  // The program cannot start with a wrong setting, so the settings are read before the fork.
  Layer.effectDiscard(Effect.flatMap(OperatorSettings, (settings) => Effect.forkScoped(operate(settings, start)))).pipe(
    Layer.provide([FetchHttpClient.layer, OperatorTerms.layerSql, Decisions.layerSql, Sentinels.layerSql, UnsentAlarms.layerSql])
  )

/** The operator. When the layer's scope closes, it ends its work and releases its lease. */
const layer = layerWith(startWork)

/** `layerWith`: with other background work, for tests. */
export const Operator = { layer, layerWith }
