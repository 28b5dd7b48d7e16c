import { KubeClient, KubeError, type KubeObject, type OwnerReference, Pod, PodDisruptionBudget } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import { budgetCorrection, disruptionBudget } from "../objects/disruptionBudget.ts"
import { wantedPod } from "../objects/wantedPod.ts"
import { annotateCopiesInUse } from "../objects/weightsCopy.ts"
import { deploymentLabel, enginePodName, objectName } from "../resources/objectNames.ts"
import { type ActionContext, type ActionOf, alreadyExists, missing } from "./ActionContext.ts"
import { avoidedNodes } from "./avoidedNodes.ts"
import { ignoreNotFound } from "./ignoreNotFound.ts"
import { keepLog } from "./keepLog.ts"
import { removeEngine } from "./removeEngine.ts"

/**
 * A pod of that name that does not belong to the run counts as missing, and no pass can resolve that. The operator
 * records an event, and tries again until someone deletes the pod.
 */
const refuseForeignPod = Effect.fnUntraced(function* ({ applying, gathered: { run } }: ActionContext, name: string, error: KubeError) {
  const existing = yield* applying.cluster.pods.get(name, applying.settings.namespace)
  if (Option.isNone(existing) || existing.value.metadata.labels?.[deploymentLabel] === run.engineRun) return yield* error
  return yield* new KubeError({ reason: "Invalid", message: `A pod ${name} that does not belong to Seatrial already exists. Delete it.` })
})

const withOwner = (pod: KubeObject, owner: OwnerReference | null): KubeObject =>
  owner === null ? pod : { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } }

export const ensurePod = Effect.fnUntraced(function* (context: ActionContext, { ordinal = 0 }: ActionOf<"EnsurePod">) {
  const kube = yield* KubeClient
  const { cluster, engineOwner, podExpectations, settings } = context.applying
  const { copiesInUse, merged, podClass, run } = context.gathered
  const avoid = yield* avoidedNodes(cluster, run)
  const pod = wantedPod(run, podClass, settings, { merged, avoid, ordinal })
  if (pod === null) return yield* missing(run, "revision, host class or engine")
  const owned = withOwner(annotateCopiesInUse(pod, copiesInUse), yield* engineOwner)
  yield* kube.create(Pod, owned).pipe(
    Effect.map(({ metadata }) => podExpectations.set(metadata.name, metadata.resourceVersion)),
    // The object was created before and no watch has shown it yet. If it exists and this operator did not create it,
    // the next pass handles it.
    Effect.catchIf(
      (error) => alreadyExists(error) && podExpectations.has(pod.metadata.name),
      () => Effect.void
    ),
    Effect.catchIf(alreadyExists, (error) => refuseForeignPod(context, pod.metadata.name, error))
  )
})

export const removePod = ({ applying, gathered: { run } }: ActionContext, { force, ordinal, uid }: ActionOf<"RemovePod">) =>
  ignoreNotFound(removeEngine(applying, { name: enginePodName(run.engineRun, ordinal), namespace: applying.settings.namespace, uid, force }))

export const ensureBudget = Effect.fnUntraced(function* ({ applying, gathered: { leastReady, run } }: ActionContext) {
  const kube = yield* KubeClient
  const { budgetExpectations, cluster, settings } = applying
  const name = objectName(run.id)
  const correct = Effect.gen(function* () {
    const budget = yield* cluster.budgets.get(name, settings.namespace)
    yield* kube.mergePatch(PodDisruptionBudget, name, settings.namespace, budgetCorrection({ id: run.id, leastReady }, Option.getOrUndefined(budget)))
    yield* Effect.logInfo(`${run.id}: the disruption budget ${name} is changed to match the engines`)
  })
  // Before the write, because a watch may show the budget before the write returns.
  budgetExpectations.set(run.id, yield* Clock.currentTimeMillis)
  yield* kube.create(PodDisruptionBudget, disruptionBudget(run, settings.namespace, leastReady)).pipe(
    Effect.catchIf(alreadyExists, () => correct),
    Effect.onError(() => Effect.sync(() => budgetExpectations.delete(run.id)))
  )
})

export const removeBudget = Effect.fnUntraced(function* ({ applying, gathered: { run } }: ActionContext) {
  const kube = yield* KubeClient
  applying.budgetExpectations.delete(run.id)
  yield* ignoreNotFound(kube.remove(PodDisruptionBudget, objectName(run.id), applying.settings.namespace))
})

export const keepEngineLog = ({ applying, gathered }: ActionContext, { code }: ActionOf<"KeepLog">) => keepLog(gathered, code, applying.settings.namespace)

export const noteNodeFault = Effect.fnUntraced(function* ({ gathered }: ActionContext, { code, ordinal = 0 }: ActionOf<"NoteNodeFault">) {
  const { run } = gathered
  const node = ordinal === 0 ? gathered.node : gathered.otherNodes.get(ordinal)
  if (node !== undefined) yield* (yield* Runs).noteNodeFault(run.engineRun, run.orgId, { node: node.metadata.name, code })
  return { run: null }
})
