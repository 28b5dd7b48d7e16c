import { Effect } from "effect"
import type { Call } from "./Http.ts"
import { at, fieldsAt, isObject, type Json, type JsonObject, put, textAt } from "./Json.ts"
import type { Kind, ScalePaths } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { parsed, patched } from "./Patch.ts"
import type { WriteOptions, Writes } from "./Writes.ts"
import type { Target } from "./writeSteps.ts"

const stepsOf = (path: string): ReadonlyArray<string> => path.split(".").slice(1)

const numberAt = (object: JsonObject, path: string): number | undefined => {
  const value = at(object, ...stepsOf(path))
  return typeof value === "number" ? value : undefined
}

/** The object as its scale subresource shows it. `replicas`: undefined if the object sets no number. */
const shown = (object: JsonObject, { selector, spec, status }: ScalePaths) => {
  const replicas = numberAt(object, spec)
  const { creationTimestamp = null, name = "", namespace = "", resourceVersion = "", uid = "" } = fieldsAt(object, "metadata")
  const scale: JsonObject = {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === undefined ? {} : { replicas },
    status: { replicas: numberAt(object, status) ?? 0, selector: textAt(object, ...stepsOf(selector)) }
  }
  return { replicas, scale }
}

/** Answers a read of the scale subresource; 500 if the object sets no number, as in Kubernetes. */
export const readScale = (object: JsonObject, paths: ScalePaths) => {
  const { replicas, scale } = shown(object, paths)
  if (replicas !== undefined) return Effect.succeed({ code: 200, json: scale })
  const message = `Internal error occurred: the spec replicas field "${paths.spec}" does not exist`
  return Effect.fail(new KubeStatus({ code: 500, reason: "InternalError", message }))
}

const changed = (kind: Kind, call: Call, scale: JsonObject, change: Json): Effect.Effect<Json, KubeStatus> =>
  call.method === "PUT" ? Effect.succeed(change) : patched(kind, call.mediaType, scale, change)

/** Changes the number of the object through its scale subresource. */
export const writeScale = Effect.fnUntraced(function* (writes: Writes["Service"], call: Call, target: Target, paths: ScalePaths, options: WriteOptions) {
  const change = yield* parsed(call.body)
  if (!isObject(change) && call.method === "PUT") return yield* KubeStatus.badRequest("the request's body is not an object")
  const outcome = yield* writes.update(
    { ...target, subresource: "" },
    Effect.fnUntraced(function* (current) {
      const replicas = at(yield* changed(target.kind, call, shown(current, paths).scale, change), "spec", "replicas")
      if (typeof replicas !== "number") return yield* KubeStatus.badRequest("the spec.replicas field is missing")
      return { object: put(current, stepsOf(paths.spec), replicas) }
    }),
    { ...options, patches: true }
  )
  return { code: 200, json: shown(outcome.stored.object, paths).scale }
})
