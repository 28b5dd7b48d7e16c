import { type JsonObject, without } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"

const renamed: ReadonlyArray<readonly [core: string, events: string]> = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"]
]

const isEventsGroup = (kind: Kind): boolean => kind.group === "events.k8s.io"

const rename = (object: JsonObject, names: ReadonlyArray<readonly [from: string, to: string]>): JsonObject => {
  const moved = new Map(names)
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [moved.get(name) ?? name, value]))
}

/**
 * A stored object in the requested version of its kind. Fields are not converted between the versions of a custom kind.
 */
export const present = (kind: Kind, object: JsonObject): JsonObject => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
  ...without(isEventsGroup(kind) ? rename(object, renamed) : object, "apiVersion", "kind")
})

/** The inverse of `present`: the stored form of a client's object. */
export const stored = (kind: Kind, object: JsonObject): JsonObject =>
  isEventsGroup(kind)
    ? rename(
        object,
        renamed.map(([core, events]) => [events, core] as const)
      )
    : object

/** The name of a member in the stored form. */
export const storedMember = (kind: Kind, name: string): string => (isEventsGroup(kind) ? (renamed.find(([, events]) => events === name)?.[0] ?? name) : name)
