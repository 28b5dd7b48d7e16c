import type { Event } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/**
 * The Kubernetes events of the transitions that the custom resource's status does not show yet. Their names follow from the run and the place in its history, so that
 * none is told twice, also after a crash between an event and the status.
 */
export const transitionEvents = (run: Run, resource: ModelDeployment): ReadonlyArray<Event> => {
  const { name, namespace } = resource.metadata
  const told = resource.status?.phases?.length ?? 0
  return run.history.slice(told).map(({ at, phase, reason }, offset) => {
    const time = new Date(at).toISOString().replace(/\.\d{3}Z$/, "Z")
    const failed = phase === "failed"
    return {
      metadata: { name: `${name}.${told + offset}.${phase}`, ...(namespace === undefined ? {} : { namespace }) },
      involvedObject: {
        apiVersion: "seatrial.dev/v1alpha1",
        kind: "ModelDeployment",
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(resource.metadata.uid === undefined ? {} : { uid: resource.metadata.uid })
      },
      type: failed ? "Warning" : "Normal",
      reason: capitalized(phase),
      message: (failed && run.failure !== null ? `${run.failure.code}: ${run.failure.text}` : (reason ?? capitalized(phase))).slice(0, 1_000),
      count: 1,
      firstTimestamp: time,
      lastTimestamp: time,
      reportingComponent: "seatrial.dev/operator",
      reportingInstance: "seatrial-operator",
      source: { component: "seatrial-operator" }
    }
  })
}
