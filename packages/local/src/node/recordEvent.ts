import { createHash } from "node:crypto"
import { defineResource, Event, type KubeClient, type KubeObject, objectSchema } from "@seatrial/kube"
import { Effect } from "effect"
import { now } from "./kubeTime.ts"

/** An event of the core group, which kubelet and the scheduler of real clusters write too. */
const CoreEvent = defineResource({ ...Event, group: "", schema: objectSchema({}) })

export interface EventNote {
  readonly object: KubeObject & { readonly kind: string; readonly apiVersion: string }
  readonly component: string
  readonly type: "Normal" | "Warning"
  readonly reason: string
  readonly message: string
}

/** Writes an Event about an object. A repeated event stays one object with a newer time. A failed write is ignored. */
export const recordEvent = Effect.fnUntraced(function* (kube: KubeClient["Service"], note: EventNote): Effect.fn.Return<void> {
  const { kind, apiVersion, metadata } = note.object
  const namespace = metadata.namespace ?? "default"
  const digest = createHash("sha256").update(`${metadata.uid}\n${note.reason}\n${note.message}`).digest("hex").slice(0, 16)
  const at = yield* now
  const event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${metadata.name}.${digest}`, namespace },
    involvedObject: { apiVersion, kind, namespace, name: metadata.name, uid: metadata.uid },
    type: note.type,
    reason: note.reason,
    message: note.message.slice(0, 1024),
    source: { component: note.component },
    reportingComponent: note.component,
    firstTimestamp: at,
    lastTimestamp: at
  }
  yield* kube.apply(CoreEvent, event).pipe(Effect.ignore)
})
