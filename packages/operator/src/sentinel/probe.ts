import { likelihoodDistance, type ProbedEngine, runningRequests } from "@seatrial/trial"
import { Data, Duration, Effect, Option } from "effect"

/** The time after which a probe is aborted: a caller's request would wait for it. */
export const probeLimit = Duration.seconds(5)

/** `Probed`: the mean difference per token in nats, NaN if the engine computes no numbers, and how long it took. */
export type ProbeResult = Data.TaggedEnum<{
  /** The engine has other work. */
  Busy: object
  /** No answer in time. */
  Late: object
  /** No answer that shows anything about the model. */
  Failed: object
  /** The engine reports no log-probabilities, or too few of them. */
  Incomparable: object
  Probed: { readonly nats: number; readonly millis: number }
}>
export const ProbeResult = Data.taggedEnum<ProbeResult>()

/** Whether an engine that answers so computes wrongly: an internal error, or values that are no numbers. */
const isWrong = ({ status }: { readonly status?: number | undefined }): boolean => status === undefined || status === 500

/** Probes the engine with one text if it is idle. Nothing of it is metered or stored. */
export const probe = Effect.fnUntraced(
  function* (engine: ProbedEngine, verified: ReadonlyArray<Float32Array>, turn: number, salt: string): Effect.fn.Return<ProbeResult> {
    const running = yield* Effect.orElseSucceed(runningRequests(engine), () => null)
    if (running === null) return ProbeResult.Failed()
    if (running > 0) return ProbeResult.Busy()
    const [took, nats] = yield* Effect.timed(
      likelihoodDistance(engine, verified, turn, salt).pipe(
        Effect.catchTags({
          EngineUnreachable: () => Effect.succeed(undefined),
          Unexpected: (error) => Effect.succeed(isWrong(error) ? Number.NaN : undefined)
        })
      )
    )
    if (nats === undefined) return ProbeResult.Failed()
    return nats === null ? ProbeResult.Incomparable() : ProbeResult.Probed({ nats, millis: Duration.toMillis(took) })
  },
  (result) => Effect.map(Effect.timeoutOption(result, probeLimit), (answered) => Option.getOrElse(answered, () => ProbeResult.Late()))
)
