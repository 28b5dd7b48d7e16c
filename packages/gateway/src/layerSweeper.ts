import { Metering, makeOutageLog } from "@seatrial/store"
import { Effect, Layer, Schedule } from "effect"

/** Ends the records of requests whose gateway died. */
export const layerSweeper = Layer.effectDiscard(
  Effect.gen(function* () {
    const { sweep } = yield* Metering
    yield* sweep.pipe(
      Effect.tap((ended) =>
        ended === 0 ? Effect.void : Effect.logWarning("requests of a crashed gateway were ended").pipe(Effect.annotateLogs("requests", ended))
      ),
      Effect.catchCause(makeOutageLog("requests of crashed gateways could not be searched for")),
      Effect.repeat(Schedule.spaced("5 seconds")),
      Effect.forkScoped
    )
  })
)
