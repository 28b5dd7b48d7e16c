import type { Metering, RequestStart } from "@seatrial/store"
import { Exit } from "effect"
import { dialects } from "./dialects/dialects.ts"
import { EventStream } from "./EventStream.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"
import type { Observer } from "./observability/Observer.ts"
import { PendingInsert } from "./PendingInsert.ts"
import { Progress } from "./Progress.ts"
import type { Running } from "./Running.ts"
import type { Admitted, Work } from "./Work.ts"

const startOf = ({ caller, checked, id, routedRequest: { engine, route } }: Admitted): RequestStart => ({
  id,
  orgId: caller.orgId,
  keyId: caller.keyId,
  endpoint: checked.endpoint,
  streamed: checked.stream,
  modelId: route.modelId,
  model: route.model,
  revisionId: route.revisionId,
  engine
})

/** Plain calls instead of effects, to keep the cost per request negligible. */
export const makeBeginWork = (
  { heartbeatMillis, writeStallMillis }: GatewayConfig["Service"],
  metering: Metering["Service"],
  observer: Observer["Service"],
  running: Running
) => {
  const openStream = ({ checked, digests, requestAbort, response }: Admitted, keepAlive: string): EventStream | null => {
    const onStall = () => requestAbort.abort("gone")
    return checked.stream ? new EventStream({ response, heartbeatMillis, keepAlive, writeStallMillis, onStall, digests }) : null
  }

  /** Inserts the record of the request while its engine works. The stream opens when the record is committed. */
  const insertRecord = (work: Work): void => {
    const { admitted, pendingInsert, progress, start, stream } = work
    metering.enter(start, (exit) => {
      pendingInsert.settle(exit)
      if (Exit.isFailure(exit)) return admitted.requestAbort.abort("unrecorded")
      if (work.isOver) return
      running.add({ id: start.id, orgId: start.orgId }, progress)
      if (!admitted.requestAbort.aborted) stream?.open()
    })
  }

  /** Begins the observation, the stream and the record of an admitted request. */
  return (admitted: Admitted): Work => {
    const { caller, checked, id, routedRequest, startedAt, traceparent } = admitted
    const dialect = dialects[checked.endpoint]
    const observed = { id, endpoint: checked.endpoint, traceparent, startedAt }
    const observation = observer.begin(observed, caller, routedRequest.route)
    const work: Work = {
      admitted,
      start: startOf(admitted),
      observed,
      dialect,
      stream: openStream(admitted, dialect.heartbeat),
      reader: dialect.makeReader(checked),
      progress: new Progress(dialect.usageOf, (seconds) => observation.series.betweenTokens.observe(seconds, id)),
      pendingInsert: new PendingInsert(),
      observation,
      cut: false,
      sentAt: null,
      sample: null,
      isOver: false
    }
    insertRecord(work)
    return work
  }
}
