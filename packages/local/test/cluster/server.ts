import { randomBytes } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { LocalCluster } from "../../src/cluster/LocalCluster.ts"

const connect = (database: string) => PgClient.layer({ url: Redacted.make(`${inject("postgres")}/${database}`) })

/** A separate database for the suite, dropped with its scope. */
export const layerDatabase = Layer.unwrap(
  Effect.gen(function* () {
    const name = `cluster_${randomBytes(6).toString("hex")}`
    const run = (statement: string) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql.unsafe(statement)
      }).pipe(Effect.provide(connect("postgres")), Effect.orDie)
    yield* Effect.acquireRelease(run(`CREATE DATABASE ${name}`), () => run(`DROP DATABASE ${name} WITH (FORCE)`))
    return connect(name)
  })
)

export interface Reply {
  readonly status: number
  readonly body: Schema.JsonObject
}

export interface Options {
  readonly type?: string
  readonly accept?: string
  readonly token?: string
}

const decodeBody = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.JsonObject))

const request = (cluster: LocalCluster["Service"], method: string, path: string, body?: unknown, options: Options = {}) =>
  Effect.tryPromise((signal) =>
    fetch(`${cluster.address}${path}`, {
      method,
      signal,
      headers: {
        authorization: `Bearer ${options.token ?? cluster.token}`,
        "user-agent": "suite/1.0",
        ...(options.accept === undefined ? {} : { accept: options.accept }),
        ...(body === undefined ? {} : { "content-type": options.type ?? "application/json" })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
  )

/** The HTTP client of the tests. */
export const clientOf = (cluster: LocalCluster["Service"]) => {
  const call = (method: string, path: string, body?: unknown, options?: Options) =>
    Effect.gen(function* () {
      const response = yield* request(cluster, method, path, body, options)
      const text = yield* Effect.tryPromise(() => response.text())
      const reply: Reply = { status: response.status, body: yield* decodeBody(text) }
      return reply
    }).pipe(Effect.orDie)
  return {
    cluster,
    call,
    get: (path: string, options?: Options) => call("GET", path, undefined, options),
    post: (path: string, body: unknown) => call("POST", path, body),
    put: (path: string, body: unknown) => call("PUT", path, body),
    merge: (path: string, body: unknown) => call("PATCH", path, body, { type: "application/merge-patch+json" }),
    apply: (path: string, manager: string, body: unknown, force = false) =>
      call("PATCH", `${path}?fieldManager=${manager}${force ? "&force=true" : ""}`, body, { type: "application/apply-patch+yaml" }),
    remove: (path: string, body?: unknown) => call("DELETE", path, body),
    /** The first `count` events of a watch, or all if it ends earlier. */
    events: (path: string, count: number, options?: Options) =>
      Effect.gen(function* () {
        const response = yield* request(cluster, "GET", path, undefined, options)
        const events: Array<Schema.JsonObject> = []
        let rest = ""
        const decoder = new TextDecoder()
        const reader = response.body?.getReader()
        while (reader !== undefined && events.length < count) {
          const { done, value } = yield* Effect.tryPromise(() => reader.read())
          if (done) break
          const lines = `${rest}${decoder.decode(value, { stream: true })}`.split("\n")
          rest = lines.pop() ?? ""
          for (const line of lines) events.push(yield* decodeBody(line))
        }
        if (reader !== undefined) yield* Effect.tryPromise(() => reader.cancel())
        return events
      }).pipe(Effect.orDie)
  }
}

export class Client extends Context.Service<Client, ReturnType<typeof clientOf>>()("test/Client") {
  static readonly layer = Layer.effect(
    Client,
    Effect.map(LocalCluster, (cluster) => clientOf(cluster))
  ).pipe(Layer.provide(LocalCluster.layer({ port: 0 })), Layer.provide(layerDatabase))
}

/** The value at a dotted path of a reply or an event; numbers are list positions. */
export const at = (value: Schema.Json | undefined, path: string): Schema.Json | undefined =>
  path.split(".").reduce<Schema.Json | undefined>((here, step) => {
    if (here === null || typeof here !== "object") return undefined
    return Object.entries(here).find(([name]) => name === step)?.[1]
  }, value)

/** Repeats a request until the answer is as wanted. */
export const eventually = <E, R>(ask: Effect.Effect<Reply, E, R>, wanted: (reply: Reply) => boolean) =>
  Effect.repeat(ask, { until: wanted }).pipe(Effect.timeout("10 seconds"), Effect.orDie)

export const widgets = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.dev" },
  spec: {
    group: "example.dev",
    scope: "Namespaced",
    names: { plural: "widgets", kind: "Widget", shortNames: ["wd"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: "Phase", type: "string", jsonPath: ".status.phase" },
          { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: "Model", type: "string", jsonPath: ".spec.model", priority: 1 },
          { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" }
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              spec: {
                type: "object",
                required: ["model"],
                properties: {
                  model: { type: "string", minLength: 2, maxLength: 10, pattern: "^[a-z-]+$" },
                  size: { type: "integer", minimum: 1, maximum: 9, default: 3 },
                  mode: { type: "string", enum: ["slow", "fast"] },
                  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                  tags: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
                  parts: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    items: { type: "object", required: ["name"], properties: { name: { type: "string" }, n: { type: "integer" }, m: { type: "integer" } } }
                  }
                }
              },
              status: {
                type: "object",
                properties: {
                  phase: { type: "string" },
                  conditions: { type: "array", items: { type: "object", properties: { type: { type: "string" }, status: { type: "string" } } } }
                }
              }
            }
          }
        }
      }
    ]
  }
}

export const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
export const widgetPath = "/apis/example.dev/v1/namespaces/default/widgets"
export const widget = (name: string, spec: object, more: object = {}) => ({ apiVersion: "example.dev/v1", kind: "Widget", metadata: { name, ...more }, spec })
export const configMaps = "/api/v1/namespaces/default/configmaps"
export const configMap = (name: string, data: object, more: object = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...more }, data })
export const pods = "/api/v1/namespaces/default/pods"
export const pod = (name: string, more: object = {}, spec: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...more },
  spec: { containers: [{ name: "main", image: "engine" }], ...spec }
})
