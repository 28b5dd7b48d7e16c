import type { DeploymentId } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { ModelDeployment, objectName } from "@seatrial/operator"
import { Effect, Option, Schema, Stream } from "effect"

const TrialFigures = Schema.Struct({
  measured: Schema.Struct({ weightsBytes: Schema.Int, kvCacheBytes: Schema.Int, kvCacheTokens: Schema.Int }),
  benchmark: Schema.Struct({
    inputTokens: Schema.Int,
    outputTokens: Schema.Int,
    steps: Schema.Array(
      Schema.Struct({
        concurrency: Schema.Int,
        requests: Schema.Int,
        outputTokensPerSecond: Schema.Finite,
        ttftMsP50: Schema.optionalKey(Schema.Finite)
      })
    ),
    missing: Schema.optionalKey(Schema.String)
  })
})

const figuresOf = ({ status }: ModelDeployment) => Option.toArray(Schema.decodeUnknownOption(TrialFigures)(status))

/**
 * The figures of a trial from the custom resource of the run. The operator records the end of a run in Postgres first
 * and writes the status later, so this watches the resource until the figures appear. Returns none if they do not
 * appear within one minute.
 */
export const awaitTrialFigures = Effect.fnUntraced(function* (id: DeploymentId) {
  const kube = yield* KubeClient
  const events = kube.watch(ModelDeployment, { namespace: "seatrial", fieldSelector: `metadata.name=${objectName(id)}` })
  return yield* events.pipe(
    Stream.flatMap((event) => Stream.fromIterable(event._tag === "Synced" ? event.items : event._tag === "Changed" ? [event.object] : [])),
    Stream.flatMap((resource) => Stream.fromIterable(figuresOf(resource))),
    Stream.runHead,
    Effect.timeoutOption("1 minute"),
    Effect.map(Option.flatten)
  )
})
