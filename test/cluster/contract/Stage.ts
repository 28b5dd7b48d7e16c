import { Effect } from "effect"
import { at, type CallOptions, KubeServer } from "./KubeServer.ts"

/** What both servers must do, each named by its promise. */
export type Behaviours = Readonly<Record<string, Effect.Effect<void, never, KubeServer>>>

const media = { merge: "application/merge-patch+json", json: "application/json-patch+json", strategic: "application/strategic-merge-patch+json" } as const

/** A namespace of a behaviour's own, and what it says to the server about it. */
export const openStage = Effect.gen(function* () {
  const { call, events, kubectl } = yield* KubeServer
  const created = yield* call("POST", "/api/v1/namespaces", { metadata: { generateName: "contract-" } })
  const namespace = String(at(created.body, "metadata.name"))
  const core = (plural: string) => `/api/v1/namespaces/${namespace}/${plural}`
  return {
    namespace,
    events,
    kubectl,
    call,
    configMaps: core("configmaps"),
    pods: core("pods"),
    core,
    group: (groupVersion: string, plural: string) => `/apis/${groupVersion}/namespaces/${namespace}/${plural}`,
    get: (path: string, options?: CallOptions) => call("GET", path, undefined, options),
    post: (path: string, body: unknown) => call("POST", path, body),
    put: (path: string, body: unknown) => call("PUT", path, body),
    remove: (path: string, body?: unknown) => call("DELETE", path, body),
    patch: (how: keyof typeof media, path: string, body: unknown) => call("PATCH", path, body, { type: media[how] }),
    apply: (path: string, manager: string, body: unknown, query = "") =>
      call("PATCH", `${path}?fieldManager=${manager}${query}`, body, { type: "application/apply-patch+yaml" })
  }
})

export const configMap = (name: string, data: object = {}, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data
})

export const pod = (name: string, metadata: object = {}, spec: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...metadata },
  spec: { containers: [{ name: "main", image: "engine:1" }], ...spec }
})
