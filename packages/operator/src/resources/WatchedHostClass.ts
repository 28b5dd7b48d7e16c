import { defineResource, objectSchema } from "@seatrial/kube"
import { Effect, Result, Schema } from "effect"
import { HostClassResource, HostClassSpec, HostClassStatus } from "./HostClassResource.ts"
import { specProblem } from "./specProblem.ts"

/** A `HostClass` as the operator reads it; see `WatchedDeployment`. */
export const WatchedHostClass = defineResource({
  ...HostClassResource,
  schema: objectSchema({
    spec: Schema.optionalKey(Schema.Unknown),
    status: Schema.optionalKey(HostClassStatus.pipe(Schema.catchDecoding(() => Effect.succeedNone)))
  })
})
export type WatchedHostClass = (typeof WatchedHostClass.schema)["Type"]

const decodeSpec = Schema.decodeUnknownResult(HostClassSpec)

/** The object with its specification, or which of its fields cannot be read and why. */
export const readHostClass = (object: WatchedHostClass): Result.Result<HostClassResource, string> =>
  Result.mapBoth(decodeSpec(object.spec), { onSuccess: (spec) => ({ ...object, spec }), onFailure: specProblem })
