import type { ServingRequest } from "@seatrial/domain"

type Parameter = Exclude<keyof ServingRequest, "yarn"> | `yarn.${keyof NonNullable<ServingRequest["yarn"]>}`

/** Names of create fields in the API, and in a ModelDeployment. */
const names: Readonly<Record<Parameter, string>> = {
  runtime: "spec.serving.runtime",
  host_class: "spec.serving.hostClass",
  max_context: "spec.serving.maxContext",
  kv_cache_dtype: "spec.serving.kvCacheDtype",
  hold_seconds: "spec.serving.holdSeconds",
  "yarn.factor": "spec.serving.yarn.factor",
  "yarn.original_context": "spec.serving.yarn.originalContext",
  engine_flags: "spec.serving.engineFlags"
}
const fields: Readonly<Record<string, string>> = names

/**
 * The field of an object for a parameter of the API, for example `serving.engine_flags.seed`. `listsClasses`: whether
 * the object has a list of host classes, which is a field of its own.
 */
export const fieldPath = (param: string, listsClasses: boolean): string => {
  if (param === "serving.host_class" && listsClasses) return "spec.serving.hostClasses"
  const path = param.replace(/^serving\./u, "")
  const [first = "", ...rest] = path.split(".")
  return Object.hasOwn(fields, path) ? (fields[path] ?? param) : [fields[first] ?? `spec.serving.${first}`, ...rest].join(".")
}
