import { hostname } from "node:os"
import { LeaseElection } from "@seatrial/kube"
import { OperatorTerm, OperatorTerms } from "@seatrial/store"
import { Cause, Duration, Effect, Layer, Option, Schedule } from "effect"
import { FetchHttpClient } from "effect/http"
import { control } from "./controller.ts"
import { OperatorSettings } from "./OperatorSettings.ts"
import { type StartWork, startWork } from "./work/startWork.ts"

/**
 * Leads, or stands by until it may: what the controllers do happens only while the lease is held, and what they write to Postgres is refused once another has begun its
 * term there.
 */
const operate = Effect.fnUntraced(function* (start: (settings: OperatorSettings) => StartWork) {
  const settings = yield* OperatorSettings
  const seconds = settings.leaseSeconds
  const terms = yield* OperatorTerms
  /** Ends, with a fault, where another operator writes to Postgres although the lease is ours. */
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
    // Before anything is read: what an earlier leader still has under way is in what we read, or is refused.
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
  Layer.effectDiscard(Effect.forkScoped(operate(start))).pipe(Layer.provide([FetchHttpClient.layer, OperatorTerms.layerSql]))

/** The operator, for as long as the layer's scope. Ends its work and releases its lease when that closes. */
const layer = layerWith(({ failedCapability, namespace }) => startWork(namespace, failedCapability))

/** `layerWith`: with other work in the background, for proofs. */
export const Operator = { layer, layerWith }
