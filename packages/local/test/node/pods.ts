import { stat } from "node:fs/promises"
import { defineResource, KubeClient, objectSchema, type Selection } from "@seatrial/kube"
import { Effect, Option, Schedule, Schema, Stream } from "effect"
import { BoundPod } from "../../src/node/PodObject.ts"

const RawPod = defineResource({
  group: "",
  version: "v1",
  plural: "pods",
  kind: "Pod",
  namespaced: true,
  schema: objectSchema({ spec: Schema.Unknown, status: Schema.optionalKey(Schema.Unknown) })
})

export const image = "ghcr.io/seatrial/test:1"
export const node = (script: string, more: object = {}) => ({ name: "main", image, command: ["node", "-e", script], ...more })
export const idle = "setInterval(() => {}, 1000)"
export const serve = "require('node:http').createServer((q, r) => r.end('ok')).listen(8000, process.env.POD_IP)"
export const podIP = { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }

export const create = (
  name: string,
  spec: { readonly containers: ReadonlyArray<object>; readonly [key: string]: unknown },
  nodeName: string | null = "gpu-0"
) =>
  Effect.flatMap(KubeClient, (kube) =>
    kube.create(RawPod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default" },
      spec: { ...(nodeName === null ? {} : { nodeName }), ...spec }
    })
  )

/** Waits until a pod is as wanted and returns it. */
export const untilOne = (selection: Selection, wanted: (pod: BoundPod) => boolean) =>
  Effect.gen(function* () {
    const kube = yield* KubeClient
    const found = yield* kube.watch(BoundPod, selection).pipe(
      Stream.flatMap((event) =>
        event._tag === "Synced" ? Stream.fromIterable(event.items) : event._tag === "Changed" ? Stream.succeed(event.object) : Stream.empty
      ),
      Stream.filter(wanted),
      Stream.runHead
    )
    return Option.getOrThrow(found)
  })

export const until = (name: string, wanted: (pod: BoundPod) => boolean) => untilOne({ fieldSelector: `metadata.name=${name}` }, wanted)

export const untilGone = (name: string) =>
  Effect.flatMap(KubeClient, (kube) =>
    kube.watch(BoundPod, { fieldSelector: `metadata.name=${name}` }).pipe(
      Stream.filter((event) => event._tag === "Removed" || (event._tag === "Synced" && event.items.length === 0)),
      Stream.runHead
    )
  )

export const isReady = (pod: BoundPod) => pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true
export const phase = (wanted: string) => (pod: BoundPod) => pod.status?.phase === wanted
export const main = (pod: BoundPod) => pod.status?.containerStatuses?.find(({ name }) => name === "main")

/** Waits until the path does not exist. */
export const untilAbsent = (path: string) =>
  Effect.promise(() =>
    stat(path).then(
      () => false,
      () => true
    )
  ).pipe(Effect.repeat({ until: (absent) => absent, schedule: Schedule.spaced("10 millis") }))
