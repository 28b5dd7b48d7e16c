import { Effect } from "effect"
import type { EventStream } from "./EventStream.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { isMetered } from "./incompleteOutcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { relay } from "./relay.ts"
import type { makeRelayedOutcome } from "./relayedOutcome.ts"
import type { LargeBodyLanes } from "./vocabulary/LargeBodies.ts"
import { restoreModelName } from "./vocabulary/restoreModelName.ts"
import type { Work } from "./Work.ts"

/** Relays the stream of an engine and determines its outcome. */
export const makeRelayStream = (config: GatewaySettings, largeBodies: LargeBodyLanes, outcomeOf: ReturnType<typeof makeRelayedOutcome>) =>
  Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, stream: EventStream, signal: RequestAbort) {
    const { admitted, progress } = work
    const { checked, requestAbort, routedRequest, startedAt } = admitted
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
      readLarge: (frame) => {
        const { cachedUnknown, choices, endpoint, model, wantsUsage } = checked
        const options = { cachedUnknown, choices, model, wantsUsage }
        return largeBodies.readFrame(frame, { endpoint, options, state: work.reader.state() }, { orgId: admitted.caller.orgId, requestAbort: signal })
      },
      memory: admitted.unreadFrames,
      rename: restoreModelName(routedRequest.route, checked),
      firstFrameMillis: config.firstFrameMillis - (performance.now() - startedAt),
      silenceMillis: config.silenceMillis,
      streamMillis: config.streamMillis - (performance.now() - startedAt),
      isMetered: () => isMetered(work),
      requestAbort,
      signal
    })
    return yield* outcomeOf(work, relayed)
  })
