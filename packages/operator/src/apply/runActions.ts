import { failureDetail, fallsBack, isFinished, isUnplaced } from "@seatrial/domain"
import { type Endpoint, type PublishedPod, type Run, Runs } from "@seatrial/store"
import { Clock, Effect } from "effect"
import { operatorMetrics } from "../metrics.ts"
import type { ActionContext, ActionOf } from "./ActionContext.ts"
import { removeHubSecret } from "./downloadActions.ts"
import { describeStep, recordMoveBack, recordStep } from "./scalingEvents.ts"

/** The run after such a transition, as Postgres now stores it; null if the transition has further effects. */
const entered = (run: Run, { plan, reason, replaces, to }: ActionOf<"Enter">, at: number): Run | null => {
  if (replaces || plan !== undefined || isFinished(to) || fallsBack(run.phase, to)) return null
  const phaseSince = Math.max(run.phaseSince, at)
  // A run that gets its GPUs keeps its host class.
  const placements = isUnplaced(to) ? run.placements : []
  return { ...run, phase: to, phaseSince, placements, history: [...run.history, { phase: to, at: phaseSince, reason }] }
}

/** The run with these endpoints. Endpoints that stay keep their reachability. */
const published = (run: Run, endpoints: ReadonlyArray<Endpoint>): Run => ({
  ...run,
  endpoints: endpoints.map(({ pod, url }) => ({
    url,
    pod,
    reachable: run.endpoints.some((known) => known.url === url && known.pod === pod && known.reachable)
  }))
})

const withImage = (run: Run, { digest, image }: ActionOf<"RecordEngineImage">): Run =>
  run.revision === null ? run : { ...run, revision: { ...run.revision, engineImage: image, engineDigest: digest } }

/**
 * The result of a write to the run: the run as the write left it, or null if the write was refused or the run must be
 * read again.
 */
const afterWrite = (current: Run | null, isWritten: boolean, change: (run: Run) => Run | null) => ({
  run: isWritten && current !== null ? change(current) : null
})

export const recordEngineImage = Effect.fnUntraced(function* ({ current, gathered: { run } }: ActionContext, action: ActionOf<"RecordEngineImage">) {
  const { digest, image } = action
  const isRecorded = yield* (yield* Runs).recordEngineImage(run.id, run.orgId, { image, digest })
  return afterWrite(current.run, isRecorded, (known) => withImage(known, action))
})

/** The endpoint with the UID of its pod. */
const ofPod = (endpoint: Endpoint, pods: ActionContext["gathered"]["pods"]): PublishedPod => {
  const podUid = pods.find(({ metadata }) => metadata.name === endpoint.pod)?.metadata.uid
  return podUid === undefined ? endpoint : { ...endpoint, podUid }
}

export const publish = Effect.fnUntraced(function* ({ current, gathered: { pods, run } }: ActionContext, { endpoints }: ActionOf<"Publish">) {
  const withUids = endpoints.map((endpoint) => ofPod(endpoint, pods))
  const isPublished = yield* (yield* Runs).publishEndpoints(run.id, run.orgId, withUids)
  return afterWrite(current.run, isPublished, (known) => published(known, endpoints))
})

export const enter = Effect.fnUntraced(function* ({ current, gathered: { run } }: ActionContext, action: ActionOf<"Enter">) {
  const { failure, hadNoGpus = false, plan, reason, replaces, to } = action
  const { id, orgId, phase } = run
  const at = yield* Clock.currentTimeMillis
  const isEntered = yield* (yield* Runs).enter({
    id,
    orgId,
    from: phase,
    to,
    reason,
    at,
    replaces,
    hadNoGpus,
    ...(failure === null ? {} : { failure }),
    ...(plan === undefined ? {} : { plan })
  })
  if (isEntered) {
    if (failure !== null) yield* operatorMetrics.failures.update({ code: failure.code }, 1)
    yield* Effect.logInfo(`${id}: ${phase} -> ${to}: ${failure === null ? reason : failureDetail(failure)}`)
  }
  return afterWrite(current.run, isEntered, (known) => entered(known, action, at))
})

export const activate = Effect.fnUntraced(function* ({ gathered: { run } }: ActionContext) {
  const { id, orgId, phase } = run
  if (yield* (yield* Runs).activate({ id, orgId, from: phase })) yield* Effect.logInfo(`${id}: ${phase} -> activated`)
  return { run: null }
})

/** Sets the number of engines by the load, and records why as an event. */
export const setReplicas = Effect.fnUntraced(function* ({ current, gathered: { run } }: ActionContext, action: ActionOf<"SetReplicas">) {
  const { from, replicas } = action
  const isSet = yield* (yield* Runs).setReplicas({ orgId: run.orgId, modelId: run.modelId, from, replicas })
  if (isSet) {
    const message = describeStep(action)
    yield* Effect.logInfo(`${run.id}: ${message}`)
    if (current.resource !== null) yield* recordStep(current.resource, action, message)
  }
  return { run: null }
})

/** Makes the earlier revision the serving one again, and records why as an event. */
export const moveBack = Effect.fnUntraced(function* ({ current, gathered: { run } }: ActionContext, { reason, to }: ActionOf<"MoveBack">) {
  if (yield* (yield* Runs).moveBack({ id: run.id, orgId: run.orgId, to, reason })) {
    yield* operatorMetrics.movesBack.update({}, 1)
    yield* Effect.logWarning(`${run.id}: the model returns to the revision ${to}: ${reason}`)
    if (current.resource !== null) yield* recordMoveBack(current.resource, to, reason)
  }
  return { run: null }
})

export const release = Effect.fnUntraced(function* (context: ActionContext) {
  const { run } = context.gathered
  // If the custom resource shows another run, nothing shows whether a Secret is left.
  if (run.applied !== null) yield* removeHubSecret(context)
  yield* (yield* Runs).release(run.id, run.orgId)
})
