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

/** A reference of a volume to a Secret or ConfigMap. Without `items`, all keys are files of their names. */
interface FilesReference {
  readonly kind: SourceKind
  readonly name: string
  readonly items?: ReadonlyArray<{ readonly key: string; readonly path: string }> | undefined
  readonly optional?: boolean | undefined
}

/** The files of a Secret or ConfigMap in a volume, by path. */
export const readFiles = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  namespace: string,
  { items, kind, name, optional }: FilesReference
): Effect.fn.Return<ReadonlyMap<string, Buffer>, PodProblem> {
  const data = yield* readSource(kube, kind, namespace, name, optional)
  const files = new Map<string, Buffer>()
  for (const { key, path } of items ?? [...data.keys()].map((key) => ({ key, path: key }))) {
    const value = data.get(key)
    if (value !== undefined) files.set(path, value)
    else if (optional !== true) return yield* new PodProblem({ reason: "CreateContainerConfigError", message: `references non-existent ${kind} key: ${key}` })
  }
  return files
})
