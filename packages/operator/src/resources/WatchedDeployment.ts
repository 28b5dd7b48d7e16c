import { defineResource } from "@seatrial/kube"
import { Effect, Result, Schema, SchemaGetter } from "effect"
import { ModelDeployment, ModelDeploymentSpec, ModelDeploymentStatus } from "./ModelDeployment.ts"
import { finalizer } from "./objectNames.ts"
import { specProblem } from "./specProblem.ts"

const { Array: List, optionalKey: optional, String: Text, Struct } = Schema

/** The largest specification in characters of JSON. One whose flags are all allowed has far fewer. */
const mostSpec = 16_384

/**
 * A specification as JSON text, which takes a tenth of the memory of an object of many small values. A list reads the
 * specifications of all objects at the same time. If one is too large, the operator stores its length instead.
 */
export class SpecText {
  readonly length: number
  /** Null if it is too large. */
  readonly text: string | null

  constructor(spec: unknown) {
    const text = JSON.stringify(spec ?? null)
    this.length = text.length
    this.text = text.length > mostSpec ? null : text
  }
}

const Spec = Schema.Unknown.pipe(
  Schema.decodeTo(Schema.Unknown, { decode: SchemaGetter.transform((spec: unknown) => new SpecText(spec)), encode: SchemaGetter.passthrough() })
)

/** Only the operator's own. A tenant may add any number of finalizers. */
const OwnFinalizers = List(Text).pipe(
  Schema.decodeTo(List(Text), {
    decode: SchemaGetter.transform((names: ReadonlyArray<string>) => names.filter((name) => name === finalizer)),
    encode: SchemaGetter.passthrough()
  })
)

/** What an object needs to be released. */
export const releaseFields = {
  name: Text,
  namespace: optional(Text),
  uid: optional(Text),
  resourceVersion: optional(Text),
  deletionTimestamp: optional(Text),
  finalizers: optional(OwnFinalizers)
}

/**
 * A `ModelDeployment` as the operator reads it: its metadata is enough to retire it. The specification is decoded when
 * it is used; see `readSpec`. A status that does not match its schema counts as absent, because the operator writes it
 * again. What a tenant may make large is not kept: labels, annotations, other finalizers, oversized specifications.
 */
export const WatchedDeployment = defineResource({
  ...ModelDeployment,
  schema: Struct({
    metadata: Struct({ ...releaseFields, generation: optional(Schema.Number), creationTimestamp: optional(Text) }),
    spec: optional(Spec),
    status: optional(ModelDeploymentStatus.pipe(Schema.catchDecoding(() => Effect.succeedNone)))
  })
})
export type WatchedDeployment = (typeof WatchedDeployment.schema)["Type"]

const decodeSpec = Schema.decodeUnknownResult(ModelDeploymentSpec)

/** The specification, or which of its fields cannot be read and why. */
export const readSpec = ({ spec }: WatchedDeployment): Result.Result<ModelDeploymentSpec, string> => {
  if (!(spec instanceof SpecText)) return Result.mapError(decodeSpec(spec), specProblem)
  const { length, text } = spec
  if (text === null) return Result.fail(`spec has ${length} characters as JSON; it must have at most ${mostSpec}`)
  return Result.mapError(decodeSpec(JSON.parse(text)), specProblem)
}
