import { Job, KubeClient, type OwnerReference, Secret } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { Effect, Option, Redacted } from "effect"
import { weightsStore } from "../gather/observeWeights.ts"
import { fetchJob, hubSecret } from "../objects/fetchObjects.ts"
import { fetchJobName, hubSecretName } from "../resources/objectNames.ts"
import { weightsClaimOf } from "../resources/PodClass.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { weightsManifest } from "../resources/weightFiles.ts"
import { type ActionContext, missing } from "./ActionContext.ts"
import { ignoreNotFound } from "./ignoreNotFound.ts"
import { putSecret } from "./putSecret.ts"

const ownerReference = (resource: WatchedDeployment): OwnerReference => ({
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "ModelDeployment",
  name: resource.metadata.name,
  uid: resource.metadata.uid ?? "",
  controller: true
})

/** The owner of the download's objects. Without an owner in their namespace, the operator alone deletes them. */
const ownerIn = (resource: WatchedDeployment | null, namespace: string): OwnerReference | null =>
  resource?.metadata.namespace === namespace ? ownerReference(resource) : null

export const ensureFetch = Effect.fnUntraced(function* ({ applying: { settings }, current: { resource }, gathered: { podClass, run } }: ActionContext) {
  const kube = yield* KubeClient
  const { revision } = run
  if (revision === null) return yield* missing(run, "revision")
  const input = { run, revision, owner: ownerIn(resource, settings.namespace), settings, weightsClaim: weightsClaimOf(podClass, settings) }
  const token = yield* (yield* Runs).hubToken(run.orgId, run.startedBy)
  if (Option.isSome(token)) yield* putSecret(hubSecret(input, Redacted.value(token.value)))
  yield* kube.apply(Job, fetchJob(input, Option.isSome(token)))
})

/** Deletes the Secret with the download's hub token. */
export const removeHubSecret = Effect.fnUntraced(function* ({ applying: { settings }, gathered: { run } }: ActionContext) {
  yield* ignoreNotFound((yield* KubeClient).remove(Secret, hubSecretName(run.id), settings.namespace))
})

export const removeFetch = Effect.fnUntraced(function* (context: ActionContext) {
  const { applying, gathered } = context
  const kube = yield* KubeClient
  yield* removeHubSecret(context)
  yield* ignoreNotFound(kube.remove(Job, fetchJobName(gathered.run.id), applying.settings.namespace, { propagation: "Background" }))
})

export const noteWeights = Effect.fnUntraced(function* ({ applying: { settings }, gathered: { podClass, run } }: ActionContext) {
  if (run.revision === null) return yield* missing(run, "revision")
  yield* (yield* Runs).noteWeights(run.id, run.orgId, { store: weightsStore(podClass, settings), manifest: weightsManifest(run.revision) })
})

export const forgetWeights = Effect.fnUntraced(function* ({ applying: { settings }, gathered: { podClass, run } }: ActionContext) {
  yield* (yield* Runs).forgetWeights(run.id, run.orgId, weightsStore(podClass, settings))
})
