import { ModelDeployment } from "@seatrial/operator"
import { Effect } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { type Lane, namespace, source } from "./Lane.ts"

/** Applies a ModelDeployment with this name, as kubectl does. Another context is an edit. */
export const applyObject = ({ kube }: Lane, name: string, maxContext: number) =>
  patiently(
    kube.apply(ModelDeployment, {
      apiVersion: "seatrial.dev/v1alpha1",
      kind: "ModelDeployment",
      metadata: { name, namespace },
      ...{ spec: { source: { repo: source.repo }, serving: { hostClass: "sim-small", maxContext } } }
    })
  )

const statusOf = ({ kube }: Lane, name: string) =>
  Effect.map(patiently(kube.get(ModelDeployment, name, namespace)), (found) => (found._tag === "Some" ? (found.value.status ?? {}) : null))

/** The run that the object shows once `holds`. */
export const runOfObject = (lane: Lane, name: string, holds: (run: string, phase: string) => boolean) =>
  Effect.map(
    eventually(`the object ${name} shows its run`, statusOf(lane, name), (status) => holds(status?.deploymentId ?? "", status?.phase ?? "")),
    (status) => status?.deploymentId ?? ""
  )

export const objectGone = (lane: Lane, name: string) => eventually(`the object ${name} goes`, statusOf(lane, name), (status) => status === null)

/** Deletes it. */
export const removal = ({ kube }: Lane, name: string) =>
  patiently(
    Effect.catchIf(
      kube.remove(ModelDeployment, name, namespace),
      ({ reason }) => reason === "NotFound",
      () => Effect.void
    )
  )

/** Deletes it and waits until it is gone. */
export const removeObject = (lane: Lane, name: string) => Effect.andThen(removal(lane, name), objectGone(lane, name))
