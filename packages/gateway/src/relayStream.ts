import { Effect } from "effect"
import { isMetered, type makeAbortedOutcome } from "./abortedOutcome.ts"
import type { EventStream } from "./EventStream.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { readEngineError } from "./engineError.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { handleEngineError } from "./handleEngineError.ts"
import { failed, type Outcome } from "./Outcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { engineFailed, engineTimeout } from "./refusals.ts"
import { relay } from "./relay.ts"
import { restoreModelName } from "./vocabulary/restoreModelName.ts"
import type { Work } from "./Work.ts"

const noUsageNote = "The engine reported no usage: the output tokens are those that were delivered, the input is unknown."

/** Relays the stream of an engine and determines its outcome. */
export const makeRelayStream = (config: GatewaySettings, abortedOutcome: ReturnType<typeof makeAbortedOutcome>) =>
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
    if (relayed._tag === "Silent") return failed(engineTimeout, "The engine stopped sending.", progress)
    if (relayed._tag === "Broken") {
      const outcome = failed(engineFailed, "The engine's stream broke off.", progress)
      if (relayed.first) return { retry: "lost", outcome } as const
      if (progress.firstContentAt === null) routedRequest.failed()
      return outcome
    }
    if (relayed._tag === "Failed") {
      if (relayed.first) return handleEngineError(relayed.payload, 200, work)
      // Some engines send a first frame before they do any work.
      const at = { endpoint: checked.endpoint, maxModelLen: route.maxModelLen }
      if (progress.firstContentAt === null && readEngineError(relayed.payload, 200, at) === engineFailed) routedRequest.failed()
      return failed(engineFailed, "The engine failed.", progress)
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
