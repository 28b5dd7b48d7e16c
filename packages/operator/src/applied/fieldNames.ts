import type { Run } from "@seatrial/store"

/** Names of create fields in the API, and in a ModelDeployment. */
const fields: Readonly<Record<string, string>> = {
  runtime: "spec.serving.runtime",
  host_class: "spec.serving.hostClass",
  max_context: "spec.serving.maxContext",
  kv_cache_dtype: "spec.serving.kvCacheDtype",
  hold_seconds: "spec.serving.holdSeconds",
  "yarn.factor": "spec.serving.yarn.factor",
  "yarn.original_context": "spec.serving.yarn.originalContext",
  engine_flags: "spec.serving.engineFlags"
}

// A bare `runtime` is also an ordinary word.
const fieldName = /(?<![\w.-])(?:serving\.)?(host_class|max_context|kv_cache_dtype|hold_seconds|yarn\.factor|yarn\.original_context|engine_flags)\b/gu

/** A message of the API with the field names of a ModelDeployment: `max_context` becomes `spec.serving.maxContext`. */
export const inFieldNames = (text: string): string => text.replace(fieldName, (match, field: string) => fields[field] ?? match)

/** The field of an object for a parameter of the API, for example `serving.engine_flags.seed`. */
export const fieldPath = (param: string): string => {
  const path = param.replace(/^serving\./u, "")
  const [first = "", ...rest] = path.split(".")
  return Object.hasOwn(fields, path) ? (fields[path] ?? param) : [fields[first] ?? `spec.serving.${first}`, ...rest].join(".")
}

/** The run as its object shows it: an applied object uses its own field names. */
export const withFieldNames = (run: Run): Run =>
  run.applied === null
    ? run
    : {
        ...run,
        failure: run.failure === null ? null : { ...run.failure, text: inFieldNames(run.failure.text) },
        history: run.history.map((entry) => (entry.reason === null ? entry : { ...entry, reason: inFieldNames(entry.reason) }))
      }
