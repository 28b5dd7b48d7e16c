import { type Cause, Effect, type Exit, Option, Predicate, Schema } from "effect"
import { type KubeObject, type Resource, toKey } from "./Resource.ts"
import type { Unreadable } from "./WatchEvent.ts"

/**
 * Decodes an object without `managedFields`. No code reads them, and a write without them leaves the stored ones
 * unchanged.
 */
export const decoderOf = <A extends KubeObject>(resource: Resource<A>): ((input: unknown) => Exit.Exit<A, Schema.SchemaError>) => {
  const decode = Schema.decodeUnknownExit(resource.schema)
  return (input) => {
    if (Predicate.hasProperty(input, "metadata") && Predicate.isObject(input.metadata)) Reflect.deleteProperty(input.metadata, "managedFields")
    return decode(input)
  }
}

const decodeName = Schema.decodeUnknownOption(
  Schema.Struct({ metadata: Schema.Struct({ name: Schema.String, namespace: Schema.optionalKey(Schema.String), uid: Schema.optionalKey(Schema.String) }) })
)
/**
 * Logs that an object was skipped because it does not match its schema, and returns its identity if that can be read.
 */
export const logUndecodable = Effect.fnUntraced(function* (resource: Resource<KubeObject>, input: unknown, cause: Cause.Cause<Schema.SchemaError>) {
  const { name, namespace, uid }: Partial<KubeObject["metadata"]> = Option.getOrUndefined(decodeName(input))?.metadata ?? {}
  const fullName = `${namespace === undefined ? "" : `${namespace}/`}${name ?? "(unnamed)"}`
  yield* Effect.logWarning(`skipped ${resource.kind} ${fullName}: it does not match its schema; its last valid state is kept`, cause)
  const identity: ReadonlyArray<Unreadable> = name === undefined ? [] : [{ key: toKey(name, namespace), uid }]
  return identity
})
