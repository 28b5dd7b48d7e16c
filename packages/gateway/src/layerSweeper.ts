import { Metering } from "@seatrial/store"
import { Effect, Layer, Schedule } from "effect"

/** Ends the records of requests whose gateway died. */
export const layerSweeper = Layer.effectDiscard(
  Effect.gen(function* () {
    const { sweep } = yield* Metering
    yield* sweep.pipe(
      Effect.tap((ended) => (ended === 0 ? Effect.void : Effect.logWarning("ended requests of a lost gateway").pipe(Effect.annotateLogs("requests", ended)))),
      Effect.catchCause((cause) => Effect.logWarning("lost requests could not be looked for", cause)),
      Effect.repeat(Schedule.spaced("5 seconds")),
      Effect.forkScoped
    )
  })
)
