import { hostname } from "node:os"
import { LeaseElection } from "@seatrial/kube"
import { Cause, Duration, Effect, Layer, Schedule } from "effect"
import { FetchHttpClient } from "effect/http"
import { control } from "./controller.ts"
import { OperatorSettings } from "./OperatorSettings.ts"
import { startWork } from "./work/startWork.ts"

/** Leads, or stands by until it may: what the controllers do happens only while the lease is held. */
const run = Effect.gen(function* () {
  const settings = yield* OperatorSettings
  const seconds = settings.leaseSeconds
  const lead = Effect.scoped(control(settings, startWork(settings.namespace))).pipe(
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

/** The operator, for as long as the layer's scope. Ends its work and releases its lease when that closes. */
const layer = Layer.effectDiscard(Effect.forkScoped(run)).pipe(Layer.provide(FetchHttpClient.layer))

export const Operator = { layer }
