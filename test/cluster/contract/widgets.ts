import { Effect } from "effect"
import { at, each, eventually, KubeServer } from "./KubeServer.ts"

const column = (name: string, type: string, jsonPath: string, more: object = {}) => ({ name, type, jsonPath, ...more })

/** Every rule of a schema that our own definitions use, but for CEL. */
export const widgets = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.contract.dev" },
  spec: {
    group: "contract.dev",
    scope: "Namespaced",
    names: { plural: "widgets", kind: "Widget", shortNames: ["wdg"], categories: ["contract"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: ".spec.copies", statusReplicasPath: ".status.count" } },
        additionalPrinterColumns: [
          column("Phase", "string", ".status.phase"),
          column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
          column("Model", "string", ".spec.model", { priority: 1 }),
          column("Age", "date", ".metadata.creationTimestamp")
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            description: "A widget.",
            required: ["spec"],
            properties: {
              spec: {
                type: "object",
                required: ["model"],
                properties: {
                  model: { type: "string", minLength: 2, maxLength: 10, pattern: "^[a-z-]+$", description: "What it is made after." },
                  copies: { type: "integer", minimum: 1, maximum: 9 },
                  size: { type: "integer", minimum: 1, maximum: 9, default: 3 },
                  share: { type: "number", exclusiveMinimum: true, minimum: 0 },
                  mode: { type: "string", enum: ["slow", "fast"] },
                  on: { type: "boolean" },
                  nested: { type: "object", default: {}, properties: { depth: { type: "integer", default: 1 } } },
                  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                  labels: { type: "object", maxProperties: 2, additionalProperties: { type: "string" } },
                  amount: { "x-kubernetes-int-or-string": true },
                  when: { type: "string", format: "date-time" },
                  empty: { type: "string", nullable: true },
                  tags: { type: "array", maxItems: 3, items: { type: "string" }, "x-kubernetes-list-type": "set" },
                  parts: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    items: { type: "object", required: ["name"], properties: { name: { type: "string" }, n: { type: "integer" }, m: { type: "integer" } } }
                  },
                  plain: { type: "array", items: { type: "integer" } },
                  whole: { type: "object", "x-kubernetes-map-type": "atomic", properties: { a: { type: "string" }, b: { type: "string" } } }
                }
              },
              status: {
                type: "object",
                properties: {
                  phase: { type: "string" },
                  conditions: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    items: { type: "object", required: ["type"], properties: { type: { type: "string" }, status: { type: "string" } } }
                  }
                }
              }
            }
          }
        }
      }
    ]
  }
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

/** Creates the definition if it is missing, and waits until its objects are served. */
export const installWidgets = Effect.gen(function* () {
  const { call } = yield* KubeServer
  yield* call("POST", definitions, widgets)
  yield* eventually(call("GET", `${definitions}/${widgets.metadata.name}`), ({ body }) => {
    const conditions = at(body, "status.conditions")
    return each(conditions, "type").some((type, index) => type === "Established" && each(conditions, "status")[index] === "True")
  })
  yield* eventually(call("GET", "/apis/contract.dev/v1/widgets"), ({ status }) => status === 200)
})

export const widget = (name: string, spec: object, metadata: object = {}) => ({
  apiVersion: "contract.dev/v1",
  kind: "Widget",
  metadata: { name, ...metadata },
  spec
})
