import { Effect } from "effect"
import type { makeAbortedOutcome } from "./abortedOutcome.ts"
import type { EventStream } from "./EventStream.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { readEngineError } from "./engineError.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { handleEngineError } from "./handleEngineError.ts"
import { type IncompleteOutcome, isMetered } from "./incompleteOutcome.ts"
import { failed, type Outcome } from "./Outcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { engineFailed, engineTimeout } from "./refusals.ts"
import { relay } from "./relay.ts"
import { restoreModelName } from "./vocabulary/restoreModelName.ts"
import type { Work } from "./Work.ts"

const noUsageNote = "The engine reported no usage: the output tokens are those that were delivered, the input is unknown."

/** Relays the stream of an engine and determines its outcome. */
export const makeRelayStream = (config: GatewaySettings, incompleteOutcome: IncompleteOutcome, abortedOutcome: ReturnType<typeof makeAbortedOutcome>) =>
  Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, stream: EventStream, signal: RequestAbort) {
    const { admitted, progress } = work
    const { checked, requestAbort, routedRequest, startedAt } = admitted
    const { route } = routedRequest
    work.reader = work.dialect.makeReader(checked)
    const relayed = yield* relay({
      upstream,
      stream,
      progress,
      pulse: routedRequest.pulse,
      begun: () => {
        if (!isMetered(work)) work.sample ??= samplePrompt(checked)
        admitted.releaseBody()
      },
      answered: () => routedRequest.answered(),
      reader: work.reader,
      rename: restoreModelName(route, checked),
      firstFrameMillis: config.firstFrameMillis - (performance.now() - startedAt),
      silenceMillis: config.silenceMillis,
      streamMillis: config.streamMillis - (performance.now() - startedAt),
      isMetered: () => isMetered(work),
      requestAbort,
      signal
    })
    if (relayed._tag === "Aborted" || (relayed._tag === "Silent" && requestAbort.aborted)) return yield* abortedOutcome(work)
    if (relayed._tag === "Silent") {
      if (relayed.first) return failed(engineTimeout, "The engine stopped sending.", progress)
      return yield* incompleteOutcome(work, engineTimeout, "The engine stopped sending", routedRequest.workedUntil)
    }
    // The caller decides how large a frame becomes, for example with log probabilities. The engine did not fail.
    if (relayed._tag === "TooLarge") return yield* incompleteOutcome(work, engineFailed, "A frame of the stream exceeded 4 MiB")
    if (relayed._tag === "Broken") {
      if (relayed.first) return { retry: "lost", outcome: failed(engineFailed, "The engine's stream broke off.", progress) } as const
      if (progress.firstContentAt === null) routedRequest.failed()
      return yield* incompleteOutcome(work, engineFailed, "The engine's stream broke off")
    }
    if (relayed._tag === "Failed") {
      if (relayed.first) return handleEngineError(relayed.payload, 200, work)
      // Some engines send a first frame before they do any work.
      const at = { endpoint: checked.endpoint, maxModelLen: route.maxModelLen }
      if (progress.firstContentAt === null && readEngineError(relayed.payload, 200, at) === engineFailed) routedRequest.failed()
      return progress.contentFrames > 0
        ? yield* incompleteOutcome(work, engineFailed, "The engine failed")
        : failed(engineFailed, "The engine failed.", progress)
    }
    const { finishReason, reportedUsage, usage } = progress
    if (reportedUsage === null) yield* Effect.logWarning("the engine reported no usage").pipe(Effect.annotateLogs("request_id", admitted.id))
    return {
      state: "completed",
      status: 200,
      usage,
      finishReason,
      error: null,
      note: reportedUsage === null ? noUsageNote : null,
      body: null
    } satisfies Outcome
  })
