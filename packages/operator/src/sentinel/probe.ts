import { likelihoodDistance, type ProbedEngine, reportedRequests } from "@seatrial/trial"
import { Data, Duration, Effect, Option } from "effect"

/** The time after which a probe is aborted: a caller's request would wait for it. */
export const probeLimit = Duration.seconds(5)

/**
 * `Probed`: the mean difference per token in nats, NaN if the engine computes no numbers, how long it took, and whether the
 * engine computed for others.
 */
export type ProbeResult = Data.TaggedEnum<{
  /** The engine has other work. */
  Busy: object
  /** No answer in time. */
  Late: object
  /** No answer that shows anything about the model. */
  Failed: object
  /** The engine reports no log-probabilities, or too few of them. */
  Incomparable: object
  Probed: { readonly nats: number; readonly millis: number; readonly isBusy: boolean }
}>
export const ProbeResult = Data.taggedEnum<ProbeResult>()

/** Whether an engine that answers so computes wrongly: an internal error, or values that are no numbers. */
const isWrong = ({ status }: { readonly status?: number | undefined }): boolean => status === undefined || status === 500

export interface ProbeOptions {
  readonly verified: ReadonlyArray<Float32Array>
  /** Selects the text. */
  readonly turn: number
  readonly salt: string
  /** For how many requests the engine may compute. Even then none may wait in its queue. */
  readonly mostOthers: number
}

/** Probes the engine with one text if it is idle. Nothing of it is metered or stored. */
export const probe = Effect.fnUntraced(
  function* (engine: ProbedEngine, options: ProbeOptions): Effect.fn.Return<ProbeResult> {
    const requests = yield* Effect.orElseSucceed(reportedRequests(engine), () => null)
    if (requests === null) return ProbeResult.Failed()
    const isBusy = requests.all > 0
    if (isBusy && (requests.all > options.mostOthers || requests.waiting > 0)) return ProbeResult.Busy()
    const [took, nats] = yield* Effect.timed(
      likelihoodDistance(engine, options.verified, options.turn, options.salt).pipe(
        Effect.catchTags({
          EngineUnreachable: () => Effect.succeed(undefined),
          Unexpected: (error) => Effect.succeed(isWrong(error) ? Number.NaN : undefined)
        })
      )
    )
    if (nats === undefined) return ProbeResult.Failed()
    return nats === null ? ProbeResult.Incomparable() : ProbeResult.Probed({ nats, millis: Duration.toMillis(took), isBusy })
  },
  (result) => Effect.map(Effect.timeoutOption(result, probeLimit), (answered) => Option.getOrElse(answered, () => ProbeResult.Late()))
)
