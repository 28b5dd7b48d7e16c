import { defineResource, type KubeClient, type KubeError, objectSchema, Secret } from "@seatrial/kube"
import { Effect, Option, Schema } from "effect"
import { PodProblem } from "./PodProblem.ts"

const ConfigMap = defineResource({
  group: "",
  version: "v1",
  plural: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
  schema: objectSchema({
    data: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    binaryData: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
  })
})

export type SourceKind = "secret" | "configmap"

const decoded = (data: Readonly<Record<string, string>> | undefined): Array<readonly [string, Buffer]> =>
  Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64")])

const unreadable = (kind: SourceKind, name: string) => (error: KubeError) =>
  new PodProblem({ reason: "CreateContainerConfigError", message: `${kind} "${name}" could not be read: ${error.message}` })

/** The content of a Secret or ConfigMap; empty if it is absent and optional. */
export const readSource = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  kind: SourceKind,
  namespace: string,
  name: string,
  optional: boolean | undefined
): Effect.fn.Return<ReadonlyMap<string, Buffer>, PodProblem> {
  const source =
    kind === "secret"
      ? Option.map(yield* kube.get(Secret, name, namespace).pipe(Effect.mapError(unreadable(kind, name))), ({ data }) => decoded(data))
      : Option.map(yield* kube.get(ConfigMap, name, namespace).pipe(Effect.mapError(unreadable(kind, name))), ({ data, binaryData }) => [
          ...Object.entries(data ?? {}).map(([key, value]): readonly [string, Buffer] => [key, Buffer.from(value)]),
          ...decoded(binaryData)
        ])
  if (Option.isSome(source)) return new Map(source.value)
  if (optional === true) return new Map()
  return yield* new PodProblem({ reason: "CreateContainerConfigError", message: `${kind} "${name}" not found` })
})
